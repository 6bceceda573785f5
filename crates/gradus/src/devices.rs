//! Where arrays are: the memory of the host, and devices. `x.to(&device)?` moves an array, `x.device()?` says where it is.

pub use gradus_core::array::{Device, Host};
