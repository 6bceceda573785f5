//! Events: something that a device does, and when it is done.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::api::{Api, call};
use crate::error::Result;
use crate::sys::{PJRT_Error, PJRT_Event, args};

/// Something that will be done, or has failed.
pub(crate) struct Event {
    api: &'static Api,
    raw: NonNull<PJRT_Event>,
}

// SAFETY: events may be asked and destroyed on any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// Who wants to be told when an event has happened, on whichever thread that is.
pub(crate) trait Told: Send + 'static {
    /// It has happened, or failed.
    fn told(self, result: Result<()>);
}

/// What is kept until an event happens.
struct Kept<T> {
    event: Event,
    value: T,
}

impl Event {
    /// The event behind a pointer; none for null, which is what has happened already.
    ///
    /// # Safety
    ///
    /// A call of this plugin gave the event, and nobody else destroys it.
    pub unsafe fn new(api: &'static Api, raw: *mut PJRT_Event) -> Option<Event> {
        Some(Event { api, raw: NonNull::new(raw)? })
    }

    /// Waits until it has happened.
    pub fn wait(&self) -> Result<()> {
        let mut a = args!(PJRT_Event_Await_Args { event: self.raw.as_ptr() });
        // SAFETY: the event lives, and the arguments are of this function.
        unsafe { call!(self.api, PJRT_Event_Await, &raw mut a) }
    }

    /// Whether it has happened.
    pub fn is_ready(&self) -> Result<bool> {
        let mut a = args!(PJRT_Event_IsReady_Args { event: self.raw.as_ptr() });
        // SAFETY: the event lives, and the arguments are of this function.
        unsafe { call!(self.api, PJRT_Event_IsReady, &raw mut a) }?;
        Ok(a.is_ready)
    }

    /// Tells a value when it has happened; until then the value is kept. If the plugin cannot tell, it is waited for here.
    pub fn tell<T: Told>(self, value: T) -> Result<()> {
        /// Takes what was kept. The plugin calls it once.
        unsafe extern "C" fn done<T: Told>(error: *mut PJRT_Error, kept: *mut c_void) {
            // SAFETY: the pointer is the one that was handed over below, and this is the only use of it.
            let kept = unsafe { Box::from_raw(kept.cast::<Kept<T>>()) };
            let Kept { event, value } = *kept;
            // The error is ours to free, which taking it does.
            value.told(event.api.check(error));
        }
        if self.api.table.PJRT_Event_OnReady.is_none() {
            value.told(self.wait());
            return Ok(());
        }
        let (api, raw) = (self.api, self.raw.as_ptr());
        let kept = Box::into_raw(Box::new(Kept { event: self, value }));
        let mut a = args!(PJRT_Event_OnReady_Args { event: raw, callback: Some(done::<T>), user_arg: kept.cast() });
        // SAFETY: the event lives in what is kept until the callback ran; the callback takes what it is handed.
        let asked = unsafe { call!(api, PJRT_Event_OnReady, &raw mut a) };
        if asked.is_err() {
            // SAFETY: it was refused, so the callback never runs, and nothing else holds the pointer.
            drop(unsafe { Box::from_raw(kept) });
        }
        asked
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let mut a = args!(PJRT_Event_Destroy_Args { event: self.raw.as_ptr() });
        // SAFETY: the event is ours, and this is its last use.
        drop(unsafe { call!(self.api, PJRT_Event_Destroy, &raw mut a) });
    }
}
