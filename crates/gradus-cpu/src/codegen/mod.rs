//! From the kernel language to machine code.
