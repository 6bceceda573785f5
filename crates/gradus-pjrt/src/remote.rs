//! Buffers as arrays of Gradus: they stay where they are until somebody reads them.

use std::sync::Arc;

use gradus_core::array::{self, Concrete, Data, Remote};
use gradus_core::{Array, Type};

use crate::buffer::Buffer;
use crate::client::Client;
use crate::error::Result;

/// A device that arrays can be moved to: `x.to(&place)?`.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    client: &'static Client,
    device: usize,
}

impl Place {
    pub(crate) fn new(client: &'static Client, device: usize) -> Result<Place> {
        client.device(device)?;
        Ok(Place { client, device })
    }
}

impl array::Device for Place {
    fn name(&self) -> String {
        format!("{}:{}", self.client.platform(), self.device)
    }

    fn upload(&self, numbers: &Concrete) -> Result<Array> {
        Ok(Array::on_device(Arc::new(Buffer::upload(self.client, self.device, numbers)?)))
    }

    fn transfer(&self, from: &Arc<dyn Remote>) -> Result<Option<Array>> {
        match of(from, self.client) {
            Some(buffer) => Ok(Some(Array::on_device(Arc::new(buffer.to_device(self.device)?)))),
            None => Ok(None),
        }
    }
}

/// The buffer of an array, if it is one of this client.
pub(crate) fn of<'a>(remote: &'a Arc<dyn Remote>, client: &'static Client) -> Option<&'a Buffer> {
    let any: &dyn std::any::Any = &**remote;
    any.downcast_ref::<Buffer>().filter(|b| std::ptr::eq(b.client(), client))
}

impl Remote for Buffer {
    fn ty(&self) -> &Type {
        Buffer::ty(self)
    }
    fn device(&self) -> Arc<dyn array::Device> {
        Arc::new(Place { client: self.client(), device: Buffer::device(self) })
    }
    fn bytes(&self) -> usize {
        Buffer::bytes(self)
    }
    fn is_ready(&self) -> bool {
        Buffer::is_ready(self)
    }
    fn wait(&self) -> Result<()> {
        Buffer::wait(self)
    }
    fn download(&self) -> Result<Data> {
        Buffer::download(self)
    }
}
