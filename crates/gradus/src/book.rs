//! The pages of the book as documentation, so that their Rust code runs with the doctests. Nothing of it is compiled
//! otherwise.

#[cfg(feature = "safetensors")]
#[doc = include_str!("../../../docs/book/src/getting-started.md")]
mod getting_started {}

#[doc = include_str!("../../../docs/book/src/coming-from-numpy.md")]
mod coming_from_numpy {}

#[cfg(feature = "stablehlo")]
#[doc = include_str!("../../../docs/book/src/programs-from-elsewhere.md")]
mod programs_from_elsewhere {}

#[cfg(feature = "pjrt")]
#[doc = include_str!("../../../docs/book/src/devices.md")]
mod devices {}

#[cfg(feature = "pjrt")]
#[doc = include_str!("../../../docs/book/src/devices-numbers.md")]
mod devices_numbers {}

#[doc = include_str!("../../../docs/book/src/threads.md")]
mod threads {}

#[cfg(feature = "linalg")]
#[doc = include_str!("../../../docs/book/src/what-is-not-here.md")]
mod what_is_not_here {}

#[doc = include_str!("../../../docs/book/src/how-differentiation-works.md")]
mod how_differentiation_works {}

#[doc = include_str!("../../../docs/book/src/how-a-program-becomes-machine-code.md")]
mod how_a_program_becomes_machine_code {}

#[doc = include_str!("../../../docs/book/src/composition.md")]
mod composition {}

#[doc = include_str!("../../../docs/book/src/control-flow.md")]
mod control_flow {}

#[doc = include_str!("../../../docs/book/src/every-size.md")]
mod every_size {}

#[doc = include_str!("../../../docs/book/src/memory.md")]
mod memory {}

#[doc = include_str!("../../../docs/book/src/training.md")]
mod training {}

#[doc = include_str!("../../../docs/book/src/saving-and-loading.md")]
mod saving_and_loading {}

#[doc = include_str!("../../../docs/book/src/recompilation.md")]
mod recompilation {}

#[doc = include_str!("../../../docs/book/src/disk-cache.md")]
mod disk_cache {}

#[cfg(feature = "linalg")]
#[doc = include_str!("../../../docs/book/src/linear-algebra.md")]
mod linear_algebra {}

#[doc = include_str!("../../../docs/book/src/randomness.md")]
mod randomness {}

#[doc = include_str!("../../../docs/book/src/signals.md")]
mod signals {}

#[doc = include_str!("../../../docs/book/src/coming-from-jax.md")]
mod coming_from_jax {}

#[doc = include_str!("../../../docs/book/src/names.md")]
mod names {}

#[doc = include_str!("../../../docs/book/src/custom-rules.md")]
mod custom_rules {}

#[doc = include_str!("../../../docs/book/src/safe-select.md")]
mod safe_select {}

#[doc = include_str!("../../../docs/book/src/verify.md")]
mod verify {}

#[doc = include_str!("../../../docs/book/src/errors.md")]
mod errors {}

#[doc = include_str!("errors/G0001.md")]
mod g0001 {}

#[doc = include_str!("errors/G0002.md")]
mod g0002 {}

#[doc = include_str!("errors/G0003.md")]
mod g0003 {}

#[doc = include_str!("errors/G0004.md")]
mod g0004 {}

#[doc = include_str!("errors/G0005.md")]
mod g0005 {}

#[doc = include_str!("errors/G0006.md")]
mod g0006 {}

#[doc = include_str!("errors/G0007.md")]
mod g0007 {}

#[doc = include_str!("errors/G0008.md")]
mod g0008 {}

#[doc = include_str!("errors/G0009.md")]
mod g0009 {}

#[doc = include_str!("errors/G0010.md")]
mod g0010 {}

#[doc = include_str!("errors/G0011.md")]
mod g0011 {}

#[doc = include_str!("errors/G0012.md")]
mod g0012 {}

#[doc = include_str!("errors/G0013.md")]
mod g0013 {}

#[doc = include_str!("errors/G0014.md")]
mod g0014 {}

#[doc = include_str!("errors/G0015.md")]
mod g0015 {}

#[doc = include_str!("errors/G0016.md")]
mod g0016 {}

#[doc = include_str!("errors/G0017.md")]
mod g0017 {}

#[doc = include_str!("errors/G0018.md")]
mod g0018 {}

#[doc = include_str!("errors/G0019.md")]
mod g0019 {}

#[doc = include_str!("errors/G0020.md")]
mod g0020 {}

#[doc = include_str!("errors/G0021.md")]
mod g0021 {}

#[doc = include_str!("../../../docs/book/src/effects.md")]
mod effects {}

#[doc = include_str!("../../../docs/book/src/hunting-nans.md")]
mod hunting_nans {}

#[doc = include_str!("errors/G0022.md")]
mod g0022 {}

#[doc = include_str!("errors/G0023.md")]
mod g0023 {}
