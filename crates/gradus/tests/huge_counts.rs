//! Every function that takes a count or a size, given one that no machine has room or time for: an error with the user's line, or a result that needs neither.
//! Never a panic, the end of the process, or a call that does not return.
#![cfg(all(target_os = "linux", feature = "fft", feature = "linalg"))]

mod little_memory;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::time::Duration;

use gradus::fft::FftOptions;
use gradus::prelude::*;
use gradus::{linalg, nn, optim, random, signal, solvers, special};

/// Far longer than any of them takes.
const PATIENCE: Duration = Duration::from_secs(60);

const COUNTS: [usize; 4] = [1 << 40, 1 << 60, i64::MAX as usize, usize::MAX];

type Call = fn(usize) -> Vec<Array>;

fn x() -> Array {
    Array::from([3.0_f64, 1.0, 2.0])
}

fn whole() -> Array {
    Array::from([2_i64, 0, 1])
}

fn key() -> Key {
    Key::new(1)
}

fn pair((a, b): (Array, Array)) -> Vec<Array> {
    vec![a, b]
}

/// An image, a kernel and a way of going over them, along one axis.
fn conv(options: nn::Conv) -> Vec<Array> {
    let (image, kernel) = (Array::ones::<f64>([2, 5, 2]), Array::ones::<f64>([3, 2, 2]));
    vec![
        nn::conv("NWC,WIO->NWC", &image, &kernel, options.clone()),
        nn::conv_transpose("NWC,WIO->NWC", &image, &kernel, options),
    ]
}

fn pool(options: nn::Pool) -> Vec<Array> {
    let image = Array::ones::<f64>([2, 5, 2]);
    vec![nn::max_pool("NWC", &image, options.clone()), nn::avg_pool("NWC", &image, options)]
}

/// Calls that must refuse the count.
const REFUSED: &[(&str, Call)] = &[
    ("from_vec", |n| vec![Array::from_vec(vec![1.0_f64], [n])]),
    ("dynamic_slice", |n| vec![x().dynamic_slice(&[Array::from(0)], [n])]),
    ("array_split", |n| x().array_split(n, 0)),
    ("array_split of as many", |n| Array::zeros::<f64>([n]).array_split(n, 0)),
    ("resize", |n| vec![x().resize([n])]),
    ("resize to two axes", |n| vec![x().resize([n, n])]),
    ("pad_interior", |n| vec![x().pad_interior(&[(0, 0, n)], 0.0)]),
    ("pad_interior at the ends", |n| vec![x().pad_interior(&[(n as i64 & i64::MAX, n as i64 & i64::MAX, 0)], 0.0)]),
    ("pad_edge", |n| vec![x().pad_edge(&[(n, n)])]),
    ("pad_edge before", |n| vec![x().pad_edge(&[(n, 0)])]),
    ("pad_reflect", |n| vec![x().pad_reflect(&[(n, n)])]),
    ("pad_reflect behind", |n| vec![x().pad_reflect(&[(0, n)])]),
    ("pad_symmetric", |n| vec![x().pad_symmetric(&[(n, n)])]),
    ("pad_wrap", |n| vec![x().pad_wrap(&[(n, 1)])]),
    ("logspace", |n| vec![Array::logspace::<f64>(0.0, 1.0, n, 10.0)]),
    ("geomspace", |n| vec![Array::geomspace::<f64>(1.0, 2.0, n)]),
    ("linspace", |n| vec![Array::linspace(0.0_f64, 1.0, n)]),
    ("bartlett", |n| vec![Array::bartlett::<f64>(n)]),
    ("blackman", |n| vec![Array::blackman::<f64>(n)]),
    ("hamming", |n| vec![Array::hamming::<f64>(n)]),
    ("hanning", |n| vec![Array::hanning::<f64>(n)]),
    ("kaiser", |n| vec![Array::kaiser::<f64>(n, 1.0)]),
    ("indices", |n| vec![Array::indices([n])]),
    ("diag_indices", |n| pair(Array::diag_indices(n))),
    ("tril_indices", |n| pair(Array::tril_indices(n, n, 0))),
    ("tril_indices of a column", |n| pair(Array::tril_indices(n, 1, 0))),
    ("triu_indices", |n| pair(Array::triu_indices(n, n, 0))),
    ("triu_indices of a row", |n| pair(Array::triu_indices(1, n, 0))),
    ("from_function", |n| vec![Array::from_function([n], |i| i[0].sin())]),
    ("partition", |n| vec![x().partition(n, 0)]),
    ("argpartition", |n| vec![x().argpartition(n, 0)]),
    ("segment_sum", |n| vec![x().segment_sum(&whole(), n)]),
    ("segment_prod", |n| vec![x().segment_prod(&whole(), n)]),
    ("segment_max", |n| vec![x().segment_max(&whole(), n)]),
    ("segment_min", |n| vec![x().segment_min(&whole(), n)]),
    ("flatnonzero", |n| vec![x().flatnonzero(n)]),
    ("nonzero", |n| x().nonzero(n)),
    ("argwhere", |n| vec![x().argwhere(n)]),
    ("compress", |n| vec![x().compress(&whole(), 0, n)]),
    ("extract", |n| vec![x().extract(&whole(), n)]),
    ("polyint", |n| vec![x().polyint(n)]),
    ("vander", |n| vec![x().vander(n)]),
    ("unique", |n| vec![x().unique(n)]),
    ("unique_all", |n| {
        let (values, first, inverse, counts) = x().unique_all(n);
        // Which element each one is does not depend on how many are wanted.
        drop(inverse);
        vec![values, first, counts]
    }),
    ("union1d", |n| vec![x().union1d(&x(), n)]),
    ("intersect1d", |n| vec![x().intersect1d(&x(), n)]),
    ("setdiff1d", |n| vec![x().setdiff1d(&x(), n)]),
    ("setxor1d", |n| vec![x().setxor1d(&x(), n)]),
    ("bincount", |n| vec![whole().bincount(n)]),
    ("bincount_weighted", |n| vec![whole().bincount_weighted(&x(), n)]),
    ("histogram_bin_edges", |n| vec![x().histogram_bin_edges(n)]),
    ("histogram", |n| pair(x().histogram(n))),
    ("eye", |n| vec![Array::eye::<f64>(n)]),
    ("tri", |n| vec![Array::tri::<f64>(n, n, 0)]),
    ("one_hot", |n| vec![whole().one_hot(n, DType::F64)]),
    ("reshape", |n| vec![x().reshape([n])]),
    ("repeat", |n| vec![x().repeat(n, 0)]),
    ("tile", |n| vec![x().tile([n])]),
    ("split", |n| x().split(n, 0)),
    ("split of as many", |n| Array::zeros::<f64>([n]).split(n, 0)),
    ("unstack", |n| Array::zeros::<f64>([n]).unstack(0)),
    ("split_at", |n| x().split_at(&[1, n], 0)),
    ("pad", |n| vec![x().pad(&[(n, n)], 0.0)]),
    ("top_k", |n| pair(x().top_k(n))),
    ("length of a scan", |n| {
        let grow = |c: &Array, (): &()| (c + 1.0, c.clone());
        vec![ScanOptions::new().length(n).scan(grow, Array::from(0.0_f64), &()).1]
    }),
    ("fftfreq", |n| vec![gradus::fft::fftfreq::<f64>(n, 1.0)]),
    ("rfftfreq", |n| vec![gradus::fft::rfftfreq::<f64>(n, 1.0)]),
    ("length of a transform", |n| vec![FftOptions::new().length(n).fft(&x()), FftOptions::new().length(n).rfft(&x())]),
    ("lengths of a transform", |n| vec![FftOptions::new().lengths([n]).irfft(&x().cast(DType::C128))]),
    ("dct_type", |n| vec![FftOptions::new().dct_type(n).dct(&x())]),
    ("solve_banded", |n| vec![linalg::solve_banded(n, n, &Array::ones::<f64>([3, 3]), &x())]),
    ("solve_banded below", |n| vec![linalg::solve_banded(n, 0, &Array::ones::<f64>([3, 3]), &x())]),
    ("padding", |n| conv(nn::Conv::default().padding([(n, n)]))),
    ("dilation", |n| conv(nn::Conv::default().dilation([n]))),
    ("image_dilation", |n| vec![conv(nn::Conv::default().image_dilation([n])).remove(0)]),
    ("strides of a transposed convolution", |n| vec![conv(nn::Conv::default().strides([n])).remove(1)]),
    ("groups", |n| conv(nn::Conv::default().groups(n))),
    ("batch_groups", |n| conv(nn::Conv::default().batch_groups(n))),
    ("window", |n| pool(nn::Pool::window([n]))),
    ("padding of a pool", |n| pool(nn::Pool::window([2]).padding([(n, n)]))),
    ("dilation of a pool", |n| pool(nn::Pool::window([2]).dilation([n]))),
    ("base_dilation", |n| pool(nn::Pool::window([2]).base_dilation([n]))),
    ("glorot_uniform", |n| vec![nn::init::glorot_uniform::<f64>(key(), [n, 1])]),
    ("glorot_normal", |n| vec![nn::init::glorot_normal::<f64>(key(), [n, 1])]),
    ("he_uniform", |n| vec![nn::init::he_uniform::<f64>(key(), [n, 1])]),
    ("he_normal", |n| vec![nn::init::he_normal::<f64>(key(), [n, 1])]),
    ("lecun_uniform", |n| vec![nn::init::lecun_uniform::<f64>(key(), [n, 1])]),
    ("lecun_normal", |n| vec![nn::init::lecun_normal::<f64>(key(), [n, 1])]),
    ("truncated_normal", |n| vec![nn::init::truncated_normal::<f64>(key(), [n, 1], 1.0)]),
    ("bits", |n| vec![random::bits::<u32>(key(), [n])]),
    ("uniform", |n| vec![random::uniform::<f64>(key(), [n])]),
    ("uniform_between", |n| vec![random::uniform_between::<f64>(key(), [n], 0.0, 1.0)]),
    ("normal", |n| vec![random::normal::<f32>(key(), [n])]),
    ("truncated_normal between", |n| vec![random::truncated_normal::<f64>(key(), [n], -1.0, 1.0)]),
    ("bernoulli", |n| vec![random::bernoulli(key(), 0.5, [n])]),
    ("randint", |n| vec![random::randint::<i32>(key(), [n], 0, 5)]),
    ("exponential", |n| vec![random::exponential::<f64>(key(), [n])]),
    ("gumbel", |n| vec![random::gumbel::<f64>(key(), [n])]),
    ("categorical", |n| vec![random::categorical(key(), &x(), 0, [n])]),
    ("permutation", |n| vec![random::permutation(key(), n)]),
    ("choice", |n| vec![random::choice(key(), &x(), [n])]),
    ("gamma", |n| vec![random::gamma::<f64>(key(), 1.5, [n])]),
    ("loggamma", |n| vec![random::loggamma::<f64>(key(), 1.5, [n])]),
    ("beta", |n| vec![random::beta::<f64>(key(), 1.5, 2.5, [n])]),
    ("ball", |n| vec![random::ball::<f64>(key(), n, 2.0, [1])]),
    ("many balls", |n| vec![random::ball::<f64>(key(), 2, 2.0, [n])]),
    ("split_n", |n| vec![key().split_n(n).into_array()]),
    ("multivariate_normal", |n| vec![random::multivariate_normal(key(), &x(), &Array::eye::<f64>(3), [n])]),
    ("poisson", |n| vec![random::poisson::<i32>(key(), 3.0, [n])]),
    ("size of a window", |n| vec![signal::Stft::new(n).stft(&x())]),
    ("bernoulli numbers", |n| vec![special::bernoulli(n)]),
];

/// Calls that have a result for every count, or may refuse it.
const HARMLESS: &[(&str, Call)] = &[
    ("full", |n| vec![Array::full([n], 1.0_f64)]),
    ("zeros", |n| vec![Array::zeros::<f64>([n])]),
    ("ones", |n| vec![Array::ones::<f64>([n])]),
    ("broadcast_to", |n| vec![x().broadcast_to([n, 3])]),
    ("iota", |n| vec![Array::iota(DType::I64, [n], 0)]),
    ("diff", |n| vec![x().diff(n, 0)]),
    ("polyder", |n| vec![x().polyder(n)]),
    ("nanvar_axes", |n| vec![x().nanvar_axes(0, n)]),
    ("nanstd_axes", |n| vec![x().nanstd_axes(0, n)]),
    ("var_axes", |n| vec![x().var_axes(0, n)]),
    ("var_keep", |n| vec![x().var_keep(0, n)]),
    ("std_axes", |n| vec![x().std_axes(0, n)]),
    ("std_keep", |n| vec![x().std_keep(0, n)]),
    ("cov", |n| vec![x().cov(n)]),
    ("unravel_index", |n| whole().unravel_index([n])),
    ("ravel_multi_index", |n| vec![Array::ravel_multi_index([whole()], [n])]),
    ("tril_indices of few", |n| pair(Array::tril_indices(n.min(1 << 60), 1 << 50, -(n.min(1 << 60) as isize) + 2))),
    ("triu_indices of few", |n| pair(Array::triu_indices(n, 3, 1))),
    ("unroll", |n| {
        let grow = |c: &Array, r: &Array| (c + r, c.clone());
        vec![ScanOptions::new().unroll(n).scan(grow, Array::from(0.0_f64), &x()).1]
    }),
    ("strides", |n| vec![conv(nn::Conv::default().strides([n])).remove(0)]),
    ("strides of a pool", |n| pool(nn::Pool::window([2]).strides([n]))),
    ("hop", |n| vec![signal::Stft::new(2).hop(n).stft(&x())]),
    ("memory", |n| vec![optim::lbfgs().memory(n).minimize(|x: &Array| x.square().sum(), &x()).point]),
    ("restart", |n| vec![solvers::Options::new().restart(n).gmres(|x: &Array| x * 2.0, &x())]),
    ("multigammaln", |n| vec![special::multigammaln(&x(), n)]),
    ("expn", |n| vec![special::expn(n, &x())]),
    ("polygamma", |n| vec![x().polygamma(n as u32)]),
    ("powi", |n| vec![x().powi(n as i64)]),
    ("check_grads", |n| vec![Array::from(gradus::check_grads(|x: &Array| x.sin().sum(), &x(), n).map(|()| x()))]),
    ("cache_limit", |n| vec![jit(|x: &Array| x * 2.0).cache_limit(n)(&x())]),
    ("budget", |n| vec![jit(|x: &Array| x * 2.0).budget(n)(&x())]),
];

/// What a call came to, by itself or as a program: an array for each result, or what it panicked with.
fn outcome(call: Call, n: usize, staged: bool) -> Option<std::thread::Result<Vec<Result<Array>>>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let run = || if staged { jit(move |_: &Array| call(n))(&x()) } else { call(n) };
        let all = catch_unwind(AssertUnwindSafe(|| run().into_iter().map(Array::ok).collect::<Vec<_>>()));
        let _ = send.send(all);
    });
    receive.recv_timeout(PATIENCE).ok()
}

fn child() {
    let mut wrong = Vec::new();
    for (all, must) in [(REFUSED, true), (HARMLESS, false)] {
        for (name, call) in all {
            for (n, staged) in COUNTS.iter().flat_map(|n| [(*n, false), (*n, true)]) {
                // Said before the call: if it ends the process, this is the last line.
                println!("{name} of {n}, staged: {staged}");
                let results = match outcome(*call, n, staged) {
                    Some(Ok(results)) => results,
                    Some(Err(_)) => {
                        wrong.push(format!("{name} of {n}, staged {staged}: panics"));
                        continue;
                    }
                    None => {
                        wrong.push(format!("{name} of {n}, staged {staged}: does not return"));
                        continue;
                    }
                };
                for result in results {
                    match result {
                        Ok(a) if must => {
                            wrong.push(format!("{name} of {n}, staged {staged}, gives {}", a.ty().unwrap()))
                        }
                        Ok(_) => {}
                        Err(e) if e.kind() == ErrorKind::Internal || !e.to_string().contains("huge_counts.rs") => {
                            wrong.push(format!("{name} of {n}, staged {staged}: {e}"));
                        }
                        Err(e) => println!("    {}", e.to_string().lines().next().unwrap_or_default()),
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("all calls");
}

#[test]
fn counts_that_nothing_has_room_for_are_refused() {
    little_memory::in_a_child("counts_that_nothing_has_room_for_are_refused", "all calls", child);
}

/// Numbers of `scipy.special.expn`, which has none for the last.
#[test]
fn integrals_of_large_orders_are_known() {
    let known = [
        (200, 0.5, 0.00304021554854278),
        (1200, 2.0, 0.00011268534173874431),
        (1200, 1e-3, 0.0008331940499948609),
        (5000, 1.0, 7.357588529066455e-05),
        (5001, 1.0, 7.356117305723033e-05),
        (5001, 30.0, 1.8603602129368595e-17),
        (1_000_000, 2.0, 1.3533514790119413e-07),
        (1_000_000_000_000, 0.25, (-0.25_f64).exp() * 1e-12),
    ];
    for (n, x, want) in known {
        let y = special::expn(n, &Array::from(x)).item::<f64>().unwrap();
        assert!((y - want).abs() <= 1e-12 * want, "{n} {x}: {y} {want}");
    }
    let edges = special::expn(1 << 40, &Array::from([-1.0_f64, f64::NAN, f64::INFINITY])).to_vec::<f64>().unwrap();
    assert!(edges[0].is_nan() && edges[1].is_nan() && edges[2] == 0.0, "{edges:?}");
    let large = special::bernoulli(262).to_vec::<f64>().unwrap();
    assert!(large[258].is_finite() && large[260] == f64::NEG_INFINITY && large[262] == f64::INFINITY, "{large:?}");
}

/// A function with a count that is not in the lists above would be tested by nobody.
#[test]
fn every_function_with_a_count_is_called() {
    // Settings that are checked where they are used, arrays with numbers that exist, and the machinery.
    const OTHERS: &[&str] = &["strided", "recycled", "memory", "for_each_row", "element", "scalar_at", "new"];
    let here = include_str!("huge_counts.rs");
    let called = |name: &str| {
        [".", "::"].iter().any(|dot| ["(", "::<"].iter().any(|after| here.contains(&format!("{dot}{name}{after}"))))
    };
    let mut missing = Vec::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("../gradus-core/src/array"), root.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                if !entry.ends_with("stage") {
                    folders.push(entry);
                }
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&entry) else { continue };
            for (_, after) in text.match_indices("pub fn ").map(|(at, word)| text.split_at(at + word.len())) {
                let signature = after.split(['{', ';']).next().unwrap_or_default();
                let given = signature.split("->").next().unwrap_or_default().replace("const N: usize", "");
                let name = signature.split(['(', '<']).next().unwrap_or_default();
                let counted = ["usize", "Into<Dim>", "IntoShape"].iter().any(|t| given.contains(t));
                // A macro's name is written where it is used.
                if counted && !name.starts_with('$') && !OTHERS.contains(&name) && !called(name) {
                    missing.push(format!("{name} of {}", entry.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
