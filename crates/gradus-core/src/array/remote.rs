//! Arrays that are not in the host's memory: what a device is asked for, and an array there with its numbers downloaded at the first read.
//!
//! A device works while the host goes on, so an array may be there before its numbers are. What goes wrong meanwhile comes out where
//! the numbers are read, as an error that names the line of the call. Type and shape are known without waiting.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::{Array, Concrete, Dims, Form, Repr};
use crate::error::{Location, Result, error};
use crate::types::{Data, Type, dispatch};

/// A buffer on a device. Dropping it frees the memory there.
pub trait Remote: Any + fmt::Debug + Send + Sync {
    /// The type of the array, of known dimensions.
    fn ty(&self) -> &Type;
    /// Where it is.
    fn device(&self) -> Arc<dyn Device>;
    /// Bytes it takes there.
    fn bytes(&self) -> usize;
    /// Whether its numbers are there, or why not is known: a download would not wait for a computation.
    fn is_ready(&self) -> bool;
    /// Waits until its numbers are there, without moving them. An error of the computation that makes them comes out here, too.
    fn wait(&self) -> Result<()>;
    /// The numbers, row-major and dense; waits for them. An error of the computation that makes them comes out here. It is asked
    /// once for each array.
    fn download(&self) -> Result<Data>;
}

/// A place where arrays can be.
pub trait Device: Any + fmt::Debug + Send + Sync {
    /// Its name, for readers: `host`, `cuda:0`. Devices of the same name are the same.
    fn name(&self) -> String;
    /// An array there with these numbers. Whoever reads them later than the call ends keeps the [`data`](Concrete::data) alive.
    fn upload(&self, numbers: &Concrete) -> Result<Array>;
    /// An array there with the numbers of a buffer elsewhere, if there is a shorter way than through the host.
    fn transfer(&self, from: &Arc<dyn Remote>) -> Result<Option<Array>> {
        let _ = from;
        Ok(None)
    }
}

impl<D: Device + ?Sized> Device for Arc<D> {
    fn name(&self) -> String {
        (**self).name()
    }
    fn upload(&self, numbers: &Concrete) -> Result<Array> {
        (**self).upload(numbers)
    }
    fn transfer(&self, from: &Arc<dyn Remote>) -> Result<Option<Array>> {
        (**self).transfer(from)
    }
}

/// The memory of the process, where arrays are that no device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host;

impl Device for Host {
    fn name(&self) -> String {
        "host".into()
    }
    fn upload(&self, numbers: &Concrete) -> Result<Array> {
        Ok(numbers.clone().into())
    }
}

/// An array on a device, shared by its clones: the buffer, and its numbers once someone read them.
pub struct Resident {
    buffer: Arc<dyn Remote>,
    dims: Dims,
    numbers: OnceLock<Result<Arc<Concrete>>>,
    /// The line of the call that made it, for errors that come later.
    place: OnceLock<Location>,
}

impl fmt::Debug for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resident({} on {})", self.buffer.ty(), self.buffer.device().name())
    }
}

impl Resident {
    /// The buffer.
    pub fn buffer(&self) -> &Arc<dyn Remote> {
        &self.buffer
    }

    /// The type.
    pub fn ty(&self) -> &Type {
        self.buffer.ty()
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The numbers in the host's memory: downloaded by the first who asks, kept for the others.
    pub(super) fn numbers(&self) -> Result<&Arc<Concrete>> {
        let found = self.numbers.get_or_init(|| {
            let place = self.place.get().copied().unwrap_or_else(Location::unknown);
            self.download().map(Arc::new).map_err(|e| e.at(place))
        });
        found.as_ref().map_err(Clone::clone)
    }

    fn download(&self) -> Result<Concrete> {
        let data = self.buffer.download()?;
        let ty = self.ty();
        if data.dtype() != ty.dtype() {
            return Err(error!(Rule, "a device gave numbers of {} for an array of type {ty}", data.dtype()));
        }
        dispatch!(ty.dtype(), T => {
            let mut data = data;
            let values = <T as crate::types::Element>::vec_mut(&mut data).map(std::mem::take).unwrap_or_default();
            Concrete::new::<T>(ty.clone(), values)
        })
    }

    /// Why there are no numbers, if someone asked for them in vain.
    pub(super) fn known_error(&self) -> Option<&crate::error::Error> {
        self.numbers.get().and_then(|n| n.as_ref().err())
    }
}

impl Array {
    /// An array whose numbers are in a buffer on a device; its dimensions are known.
    pub fn on_device(buffer: Arc<dyn Remote>) -> Array {
        let Some(dims) = buffer.ty().shape().known() else {
            return error!(Shape, "a buffer on a device needs known dimensions, not {}", buffer.ty()).into();
        };
        let resident = Resident { buffer, dims, numbers: OnceLock::new(), place: OnceLock::new() };
        Array { repr: Repr::Remote(Arc::new(resident)) }
    }

    /// The buffer on a device, if the array is on one.
    pub fn remote(&self) -> Option<&Arc<dyn Remote>> {
        if let Repr::Remote(r) = &self.repr { Some(&r.buffer) } else { None }
    }

    /// Whether it has numbers, wherever they are. Nothing is downloaded, and a device may still find that there are none.
    #[inline]
    pub fn has_numbers(&self) -> bool {
        matches!(self.repr, Repr::Concrete(_) | Repr::Remote(_))
    }

    /// The numbers in the host's memory, downloaded if a device has them; or why there are none.
    pub fn on_host(&self) -> Result<&Arc<Concrete>> {
        match &self.repr {
            Repr::Concrete(c) => Ok(c),
            Repr::Remote(r) => r.numbers(),
            Repr::Failed(e) => Err(e.clone()),
            Repr::Spec(ty) => Err(error!(NotConcrete, "{ty} is only a type and has no numbers")),
            Repr::Traced(t) => Err(error!(NotConcrete, "{t:?} has no numbers until its program runs")),
        }
    }

    /// Waits until a device has computed the array; its numbers stay there. For measuring times, and for errors that should come out here. An array of the
    /// host is there already.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// assert!(Array::from([1.0, 2.0]).wait().is_ok());
    /// ```
    #[doc(alias = "block_until_ready")]
    pub fn wait(&self) -> Result<()> {
        match &self.repr {
            Repr::Remote(r) => {
                r.buffer.wait().map_err(|e| e.at(r.place.get().copied().unwrap_or_else(Location::unknown)))
            }
            Repr::Concrete(_) => Ok(()),
            Repr::Failed(_) | Repr::Spec(_) | Repr::Traced(_) => self.on_host().map(|_| ()),
        }
    }

    /// Says which line is to blame if a device fails to compute the array. Arrays of the host are there already.
    #[inline]
    pub fn made_at(&self, place: Location) {
        if let Repr::Remote(r) = &self.repr {
            // The first one is nearest to the call.
            let _ = r.place.set(place);
        }
    }

    /// Whether nobody else holds the buffer of an array on a device: a program may write its results there.
    pub fn is_unshared(&self) -> bool {
        match &self.repr {
            Repr::Remote(r) => Arc::strong_count(r) == 1 && Arc::strong_count(&r.buffer) == 1,
            _ => false,
        }
    }

    /// The same array on a device, or in the memory of the [`Host`]. One that is there already is shared, not copied.
    ///
    /// A traced value is wherever its program runs; it cannot be moved.
    ///
    /// ```
    /// # use gradus_core::{Array, array::Host};
    /// let x = Array::from([1.0, 2.0]).to(&Host)?;
    /// assert_eq!(x.device()?.name(), "host");
    /// # Ok::<(), gradus_core::Error>(())
    /// ```
    #[track_caller]
    pub fn to(&self, device: &dyn Device) -> Result<Array> {
        let place = Location::caller();
        let there = self.device().map_err(|e| e.at(place))?;
        if there.name() == device.name() {
            return Ok(self.clone());
        }
        let moved = match self.form() {
            Form::Remote(r) => device.transfer(&r.buffer).map_err(|e| e.at(place))?,
            _ => None,
        };
        let moved = match moved {
            Some(moved) => moved,
            None => device.upload(self.on_host()?).map_err(|e| e.at(place))?,
        };
        moved.made_at(place);
        moved.ok().map_err(|e| e.at(place))
    }

    /// Where the array is: on a device, or in the memory of the [`Host`]. An error if it has no numbers, which could be somewhere.
    #[track_caller]
    pub fn device(&self) -> Result<Arc<dyn Device>> {
        match &self.repr {
            Repr::Concrete(_) => Ok(Arc::new(Host)),
            Repr::Remote(r) => Ok(r.buffer.device()),
            Repr::Failed(e) => Err(e.clone()),
            Repr::Traced(_) | Repr::Spec(_) => {
                Err(error!(NotConcrete, "{self} is nowhere: it has no numbers until a program runs")
                    .at(Location::caller())
                    .help("move the arguments of a program, or choose where it runs: `jit(f).backend(..)`"))
            }
        }
    }
}
