//! Gradus programs on devices that speak PJRT, the interface of XLA's plugins: all the unsafe code that talks to one is here.
