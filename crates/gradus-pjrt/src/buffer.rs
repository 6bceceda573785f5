//! Arrays on a device: they go up, come down, and go away with their last holder.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gradus_core::Type;
use gradus_core::array::{Concrete, Data};

use crate::api::call;
use crate::client::Client;
use crate::error::{Result, error, fail};
use crate::event::{Event, Told};
use crate::memory::{address, element_type, filled};
use crate::sys::{PJRT_Buffer, PJRT_Buffer_MemoryLayout_Type, PJRT_HostBufferSemantics as Semantics, args};

/// What the CPU plugin wants of memory that it reads in place.
const ALIGNMENT: usize = 64;

/// Arrays of fewer bytes are copied within the call: that is cheaper than to be told when they were.
const SMALL: usize = 16 << 10;

/// An array on a device. It may not be computed yet: who reads it waits, and gets the error of the run that was to make it.
pub struct Buffer {
    client: &'static Client,
    device: usize,
    raw: NonNull<PJRT_Buffer>,
    ty: Type,
    /// Whether the memory is an array's of the host, which must not be written.
    borrowed: bool,
    /// Who counts the bytes that are read back, besides the client: the code that made it.
    read: Option<Arc<AtomicU64>>,
}

// SAFETY: the interface says that buffers may be used from any thread; destroying one waits for nobody and is done once.
unsafe impl Send for Buffer {}
// SAFETY: as above: no function here changes a buffer but donation, after which the plugin refuses every use of it.
unsafe impl Sync for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} on {} {})", self.ty, self.client.platform(), self.device)
    }
}

impl Buffer {
    /// The buffer behind a pointer.
    ///
    /// # Safety
    ///
    /// A call of this client's plugin gave it, it lies on this device and is of this type, and nobody else destroys it.
    pub(crate) unsafe fn new(client: &'static Client, device: usize, raw: NonNull<PJRT_Buffer>, ty: Type) -> Buffer {
        Buffer { client, device, raw, ty, borrowed: false, read: None }
    }

    /// The same, with the bytes that are read back counted.
    pub(crate) fn counted(mut self, read: &Arc<AtomicU64>) -> Buffer {
        self.read = Some(read.clone());
        self
    }

    /// Puts an array on a device. It is not waited for: the array is kept until the device has read it.
    pub fn upload(client: &'static Client, device: usize, array: &Concrete) -> Result<Buffer> {
        let array = array.try_dense()?;
        let ty = array.ty().clone();
        let bytes = array.count() * ty.dtype().size();
        let mut dims = [0i64; MOST_AXES];
        let rank = array.dims().len();
        if rank > MOST_AXES {
            fail!(Shape, "{ty} has more axes than the {MOST_AXES} that an array on a device may have");
        }
        for (to, from) in dims.iter_mut().zip(array.dims()) {
            *to = i64::try_from(*from).map_err(|_| error!(Size, "{ty} is too large for a device"))?;
        }
        // No place is needed for no elements, and null would be taken for a mistake.
        static NOTHING: u64 = 0;
        let data = if bytes == 0 { (&raw const NOTHING).cast() } else { address(&array) };
        let semantics = match () {
            () if bytes < SMALL => Semantics::IMMUTABLE_ONLY_DURING_CALL,
            () if client.shares_memory() && data.addr() % ALIGNMENT == 0 => Semantics::IMMUTABLE_ZERO_COPY,
            () => Semantics::IMMUTABLE_UNTIL_TRANSFER_COMPLETES,
        };
        let mut a = args!(PJRT_Client_BufferFromHostBuffer_Args {
            client: client.raw(),
            data: data.cast(),
            kind: element_type(ty.dtype()),
            dims: dims.as_ptr(),
            num_dims: rank,
            host_buffer_semantics: semantics,
            device: client.device(device)?.raw.as_ptr(),
        });
        // SAFETY: the array is dense, so `data` has as many elements as `dims` say. They are not written by anyone while the array is held, which it is
        // during the call, and below until the event says that the plugin is done with them.
        unsafe { call!(client.api(), PJRT_Client_BufferFromHostBuffer, &raw mut a) }?;
        // SAFETY: the call gave the event to us.
        let done = unsafe { Event::new(client.api(), a.done_with_host_buffer) };
        let Some(raw) = NonNull::new(a.buffer) else {
            fail!(Device, "{} gave no buffer and no error", client.api().name);
        };
        let borrowed = semantics == Semantics::IMMUTABLE_ZERO_COPY;
        let buffer = Buffer { client, device, raw, ty, borrowed, read: None };
        if borrowed {
            client.moved.shared(bytes);
        } else {
            client.moved.up(bytes);
        }
        if semantics != Semantics::IMMUTABLE_ONLY_DURING_CALL
            && let Some(done) = done
        {
            done.tell(Lent(array))?;
        }
        Ok(buffer)
    }

    /// The array's numbers, in row-major order. Waits until they are there; the error of the run that was to make them comes out here.
    pub fn download(&self) -> Result<Data> {
        let api = self.client.api();
        let count = self.ty.shape().count().ok_or_else(|| error!(Size, "{} has no size", self.ty))?;
        if count == 0 {
            self.wait()?;
        }
        let rank = self.ty.shape().rank();
        let minor_to_major: [i64; MOST_AXES] = std::array::from_fn(|i| rank as i64 - 1 - i as i64);
        let mut layout = args!(PJRT_Buffer_MemoryLayout { kind: PJRT_Buffer_MemoryLayout_Type::TILED });
        layout.value.tiled = args!(PJRT_Buffer_MemoryLayout_Tiled {
            minor_to_major: minor_to_major.as_ptr(),
            minor_to_major_size: rank,
        });
        let fill = |to: *mut u8, bytes: usize| {
            if bytes == 0 {
                return Ok(());
            }
            let mut a = args!(PJRT_Buffer_ToHostBuffer_Args {
                src: self.raw.as_ptr(),
                host_layout: &raw mut layout,
                dst: to.cast(),
                dst_size: bytes,
            });
            // SAFETY: the buffer lives; `to` has room for `bytes`, and is not let go of before the event has happened.
            let event = unsafe {
                call!(api, PJRT_Buffer_ToHostBuffer, &raw mut a)?;
                Event::new(api, a.event)
            };
            self.client.moved.down(bytes);
            if let Some(read) = &self.read {
                read.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            event.map_or(Ok(()), |e| e.wait())
        };
        // SAFETY: the plugin has written the whole array, row by row, when the event has happened without an error, and predicates as zeros and ones.
        unsafe { filled(self.ty.dtype(), count, fill) }
    }

    /// Waits until the array is there.
    pub fn wait(&self) -> Result<()> {
        self.ready()?.map_or(Ok(()), |e| e.wait())
    }

    /// Whether the array is there, or will never be.
    pub fn is_ready(&self) -> bool {
        self.ready().and_then(|e| e.map_or(Ok(true), |e| e.is_ready())).unwrap_or(true)
    }

    fn ready(&self) -> Result<Option<Event>> {
        let mut a = args!(PJRT_Buffer_ReadyEvent_Args { buffer: self.raw.as_ptr() });
        // SAFETY: the buffer lives, the arguments are of this function, and the event that it gives is ours.
        unsafe {
            call!(self.client.api(), PJRT_Buffer_ReadyEvent, &raw mut a)?;
            Ok(Event::new(self.client.api(), a.event))
        }
    }

    /// A copy on another device of the same client.
    pub fn to_device(&self, device: usize) -> Result<Buffer> {
        let to = self.client.device(device)?;
        let mut a = args!(PJRT_Buffer_CopyToDevice_Args { buffer: self.raw.as_ptr(), dst_device: to.raw.as_ptr() });
        // SAFETY: buffer and device live and belong to one client.
        unsafe { call!(self.client.api(), PJRT_Buffer_CopyToDevice, &raw mut a) }?;
        let Some(raw) = NonNull::new(a.dst_buffer) else { fail!(Device, "{:?} could not be copied", self) };
        // SAFETY: the call gave it to us; it has the type of what was copied.
        Ok(unsafe { Buffer::new(self.client, device, raw, self.ty.clone()) })
    }

    /// The type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The client.
    pub fn client(&self) -> &'static Client {
        self.client
    }

    /// The number of its device among those of the client.
    pub fn device(&self) -> usize {
        self.device
    }

    /// Bytes of its numbers.
    pub fn bytes(&self) -> usize {
        self.ty.shape().count().unwrap_or(0) * self.ty.dtype().size()
    }

    /// Whether the device reads memory of an array of the host.
    pub fn is_borrowed(&self) -> bool {
        self.borrowed
    }

    pub(crate) fn raw(&self) -> *mut PJRT_Buffer {
        self.raw.as_ptr()
    }
}

/// The most axes that an array may have on a device.
pub(crate) const MOST_AXES: usize = 32;

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut a = args!(PJRT_Buffer_Destroy_Args { buffer: self.raw.as_ptr() });
        // SAFETY: the buffer is ours, and this is its last use; the plugin keeps the memory for as long as a run needs it.
        drop(unsafe { call!(self.client.api(), PJRT_Buffer_Destroy, &raw mut a) });
    }
}

/// An array of the host that a device reads. It is let go of when the device is done; an error of the transfer comes out where the buffer is read.
struct Lent(#[allow(dead_code, reason = "it is held, not read")] Concrete);

impl Told for Lent {
    fn told(self, _: Result<()>) {}
}
