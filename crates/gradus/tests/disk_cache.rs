//! Programs on disk: a second process does not compile again, and nothing that happens to the files gives a wrong number.
//!
//! A process is this test binary run again with the helper test `child`, which says on its standard output what it computed
//! and how.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use gradus::cache::{clear_executables, disk_cache_stats, set_disk_cache};
use gradus::inspect::Stats;
use gradus::prelude::*;
use gradus::warnings;

/// A folder that goes away with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("gradus_disk_{name}_{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Folder(path)
    }

    fn entries(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|e| e.path());
        let mut found: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "code")).collect();
        found.sort();
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

type Unary = Fun<(Array,), Array>;

/// A function of each kind of code: kernels, products, special functions, control flow, single primitives.
fn functions() -> Vec<(&'static str, Unary)> {
    vec![
        ("elementwise", jit(|x: &Array| (x * x).sin() + x.exp().tanh())),
        ("gradient", jit(grad(|x: &Array| (x.sin() * x.exp()).sum()))),
        ("product", jit(|x: &Array| x.dot(&x.transpose([1, 0])).logsumexp_axes(1))),
        ("special", jit(|x: &Array| (x.abs() + 0.5).lgamma() + (x * 0.1).erf_inv())),
        ("sorted", jit(|x: &Array| x.sort(1).cumsum(0))),
        ("loop", jit(|x: &Array| fori_loop(0, 5, |_, y: &Array| (y * 0.5).cos(), x.clone()))),
        ("branch", jit(|x: &Array| cond(x.sum().gt(0.0), |x: &Array| x.abs().sqrt(), |x: &Array| -x, x))),
    ]
}

fn argument() -> Array {
    // Large enough that some loops are worth threads, and with arguments that are rare cases of `sin`.
    let values: Vec<f64> = (0..64 * 40).map(|i| f64::from(i) * 0.37 - 90.0).chain([1e9; 40]).collect();
    Array::from(values).reshape([65, 40]) * 0.01
}

fn bits(a: &Array) -> String {
    let values = a.to_vec::<f64>().unwrap();
    let all = values.iter().fold(0u64, |h, v| (h ^ v.to_bits()).wrapping_mul(0x100_0000_01b3).rotate_left(17));
    format!("{all:016x} of {}", values.len())
}

/// Not a test of its own: what a process of the tests below does, as the environment says.
#[test]
#[ignore = "run by the other tests, in processes of their own"]
fn child() {
    let Ok(task) = std::env::var("GRADUS_TEST_TASK") else { return };
    if task == "storm" {
        // Compiles one program after the other until it is killed.
        for n in 1..100_000_usize {
            let x = Array::from(vec![0.5_f64; n]);
            for (_, f) in &functions()[..2] {
                assert!(f(&x).to_vec::<f64>().is_ok());
            }
        }
        return;
    }
    let x = argument();
    let mut total = Stats::default();
    let all = functions();
    for (name, f) in &all {
        println!("RESULT {name} {}", bits(&f(&x)));
        let stats = f.stats();
        total.compiles += stats.compiles;
        total.loaded += stats.loaded;
        if let Ok(calls) = std::env::var("GRADUS_TEST_CALLS") {
            // Called often: the optimizing tier's turn.
            for _ in 0..calls.parse::<usize>().unwrap() {
                drop(f(&x));
            }
        }
    }
    if std::env::var_os("GRADUS_TEST_CALLS").is_some() {
        call_until_the_tiers_are_compared(|| all.iter().for_each(|(_, f)| drop(f(&x))));
    }
    println!("COUNT compiles {}", total.compiles);
    println!("COUNT loaded {}", total.loaded);
    if let Some(disk) = disk_cache_stats() {
        for (name, count) in [
            ("entries", disk.entries as u64),
            ("bytes", disk.bytes),
            ("loads", disk.loads),
            ("broken", disk.broken),
            ("stores", disk.stores),
        ] {
            println!("COUNT {name} {count}");
        }
    }
}

/// Until the code of both tiers is stored, and which is faster.
fn call_until_the_tiers_are_compared(call: impl Fn()) {
    let stores = || disk_cache_stats().map_or(0, |d| d.stores);
    let want = 3 * functions().len() as u64;
    for _ in 0..2400 {
        if stores() >= want {
            return;
        }
        call();
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// What a process said.
#[derive(Debug, PartialEq, Default)]
struct Said {
    results: BTreeMap<String, String>,
    counts: BTreeMap<String, u64>,
    errors: String,
}

impl Said {
    fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or_else(|| panic!("no count of {name}: {self:?}"))
    }
}

fn command(folder: Option<&Path>, tier: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"])
        .env("GRADUS_TEST_TASK", "compute")
        .env("GRADUS_BACKEND", tier)
        .env_remove("GRADUS_CACHE_DIR")
        .env_remove("GRADUS_CACHE_LIMIT")
        .env_remove("GRADUS_DUMP")
        .env_remove("GRADUS_WARNINGS")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = folder {
        command.env("GRADUS_CACHE_DIR", folder);
    }
    command
}

fn said(output: &Output) -> Said {
    let mut said = Said { errors: String::from_utf8_lossy(&output.stderr).into_owned(), ..Said::default() };
    assert!(output.status.success(), "{output:?}");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        // The harness writes its own words in front of the first line.
        if let Some((name, value)) = line.split_once("RESULT ").and_then(|l| l.1.split_once(' ')) {
            said.results.insert(name.into(), value.into());
        }
        if let Some((name, value)) = line.split_once("COUNT ").and_then(|l| l.1.split_once(' ')) {
            said.counts.insert(name.into(), value.parse().unwrap());
        }
    }
    assert_eq!(said.results.len(), functions().len(), "{output:?}");
    said
}

fn run(folder: Option<&Path>, tier: &str) -> Said {
    said(&command(folder, tier).output().unwrap())
}

#[test]
fn row_s3_a_second_process_does_not_compile_again() {
    for tier in ["embedded", "llvm"] {
        let folder = Folder::new(tier);
        let n = functions().len() as u64;
        let without = run(None, tier);
        let first = run(Some(&folder.0), tier);
        assert_eq!((first.count("compiles"), first.count("loaded")), (n, 0), "{tier}");
        assert_eq!(folder.entries().len() as u64, n, "{tier}");
        let second = run(Some(&folder.0), tier);
        assert_eq!((second.count("compiles"), second.count("loaded")), (0, n), "{tier}");
        assert_eq!((second.count("stores"), second.count("broken")), (0, 0), "{tier}");
        // The same bits, whether the code was made or loaded.
        assert_eq!(first.results, without.results, "{tier}");
        assert_eq!(second.results, without.results, "{tier}");
        assert_eq!(second.errors, without.errors, "{tier}");
    }
}

#[test]
fn what_was_the_faster_code_in_one_process_is_used_by_the_next_at_once() {
    if gradus::cpu::Tier::Llvm.available().is_err() {
        return;
    }
    let folder = Folder::new("background");
    let n = functions().len() as u64;
    let first = said(&command(Some(&folder.0), "native").env("GRADUS_TEST_CALLS", "70").output().unwrap());
    assert_eq!(first.count("compiles"), n);
    assert_eq!(first.count("stores"), 3 * n, "the code of both tiers of every program, and which is faster: {first:?}");
    let second = said(&command(Some(&folder.0), "native").output().unwrap());
    // Two loads each: which code is faster, and that code, with no look at the other.
    assert_eq!((second.count("compiles"), second.count("loaded"), second.count("loads")), (0, n, 2 * n));
    assert_eq!(second.results, first.results);
}

#[test]
fn who_wants_texts_has_the_code_made() {
    let (folder, with, without) = (Folder::new("texts"), Folder::new("dump_with"), Folder::new("dump_without"));
    run(Some(&folder.0), "embedded");
    let dumped = |cache: Option<&Path>, to: &Folder| {
        let said = said(&command(cache, "embedded").env("GRADUS_DUMP", &to.0).output().unwrap());
        assert_eq!(said.count("compiles"), functions().len() as u64);
        let mut texts = BTreeMap::new();
        let mut open = vec![to.0.clone()];
        while let Some(folder) = open.pop() {
            for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
                match path.is_dir() {
                    true => open.push(path),
                    false => drop(texts.insert(path.strip_prefix(&to.0).unwrap().to_owned(), fs::read(&path).unwrap())),
                }
            }
        }
        texts
    };
    let made = dumped(None, &without);
    assert!(made.len() >= functions().len() && made.values().any(|t| t.len() > 1000), "{:?}", made.keys());
    assert_eq!(dumped(Some(&folder.0), &with), made);
}

#[test]
fn many_processes_at_once_share_a_folder() {
    let folder = Folder::new("many");
    let want = run(None, "embedded").results;
    for _ in 0..2 {
        let children: Vec<Child> = (0..8).map(|_| command(Some(&folder.0), "embedded").spawn().unwrap()).collect();
        for child in children {
            let said = said(&child.wait_with_output().unwrap());
            assert_eq!(said.results, want);
            assert_eq!(said.count("broken"), 0);
            assert_eq!(said.count("compiles") + said.count("loaded"), functions().len() as u64);
        }
        assert_eq!(folder.entries().len(), functions().len());
    }
    assert_eq!(run(Some(&folder.0), "embedded").count("loaded"), functions().len() as u64);
}

#[test]
fn a_process_that_is_killed_leaves_nothing_that_is_used() {
    let folder = Folder::new("killed");
    for i in 0..60_u64 {
        let mut child = command(Some(&folder.0), "embedded").env("GRADUS_TEST_TASK", "storm").spawn().unwrap();
        // From before the first program to the middle of the storm, at another time each time.
        std::thread::sleep(Duration::from_micros(5_000 + (i * 7_919) % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(!folder.entries().is_empty(), "some were killed after they had written something");
    // Every file under its own name is whole: it was there at once.
    let said = said(&command(Some(&folder.0), "embedded").output().unwrap());
    assert_eq!(said.count("broken"), 0);
    assert_eq!(said.results, run(None, "embedded").results);
    let mut again = command(Some(&folder.0), "embedded").env("GRADUS_TEST_TASK", "storm").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    again.kill().unwrap();
    again.wait().unwrap();
}

#[test]
fn row_s3_the_folder_keeps_to_its_bound() {
    let folder = Folder::new("bound");
    let all = run(Some(&folder.0), "embedded");
    let limit = all.count("bytes") / 2;
    let folder = Folder::new("bound");
    let half =
        said(&command(Some(&folder.0), "embedded").env("GRADUS_CACHE_LIMIT", limit.to_string()).output().unwrap());
    assert!(half.count("bytes") <= limit && half.count("entries") > 0, "{half:?}");
    assert!(half.count("entries") < all.count("entries"));
    assert_eq!(half.results, all.results);
}

#[test]
fn a_folder_that_cannot_be_used_costs_a_warning() {
    let want = run(None, "embedded").results;
    // A file is in its place.
    let folder = Folder::new("file");
    fs::write(&folder.0, b"").unwrap();
    let said = run(Some(&folder.0), "embedded");
    assert_eq!(said.results, want);
    assert_eq!(said.errors.matches("[W0005]").count(), 1, "{}", said.errors);
    fs::remove_file(&folder.0).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let rights = |mode| fs::set_permissions(&folder.0, fs::Permissions::from_mode(mode)).unwrap();
        fs::create_dir(&folder.0).unwrap();
        // Others could put code there.
        rights(0o777);
        let said = run(Some(&folder.0), "embedded");
        assert_eq!(said.results, want);
        assert!(said.errors.contains("can be written by other users"), "{}", said.errors);
        assert!(folder.entries().is_empty());
        // Filled, and then only read: entries are used, and nothing is said.
        rights(0o700);
        run(Some(&folder.0), "embedded");
        rights(0o500);
        let said = run(Some(&folder.0), "embedded");
        assert_eq!((said.results.clone(), said.count("loaded")), (want.clone(), functions().len() as u64));
        assert!(!said.errors.contains("warning"), "{}", said.errors);
        rights(0o700);
    }
}

/// The only test that uses the disk cache in this process.
#[test]
fn row_s3_a_damaged_entry_is_ignored_and_made_again() -> Result<()> {
    let folder = Folder::new("damaged");
    set_disk_cache(&folder.0, 1 << 30)?;
    let x = Array::from([0.3_f64, 1e9, -2.0]);
    let want = bits(&(x.sin() * 2.0).lgamma());
    let look = |what: &str| {
        clear_executables();
        let f = jit(|x: &Array| (x.sin() * 2.0).lgamma()).tier(gradus::cpu::Tier::Embedded);
        assert_eq!(bits(&f(&x)), want, "{what}");
        let stats = f.stats();
        (stats.compiles, stats.loaded)
    };
    assert_eq!(look("first"), (1, 0));
    assert_eq!(look("second"), (0, 1));
    let [path] = &folder.entries()[..] else { panic!("one entry is expected") };
    let whole = fs::read(path).unwrap();
    let write = |bytes: &[u8]| fs::write(path, bytes).unwrap();
    let mut tried = 0;
    // Every byte of the header, and one byte in each region behind it.
    for at in (0..100).chain((100..whole.len()).step_by(13)).filter(|at| *at < whole.len()) {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        write(&bad);
        assert_eq!(look(&format!("byte {at}")), (1, 0));
        tried += 1;
    }
    for n in (0..100).chain((100..whole.len()).step_by(97)).filter(|n| *n < whole.len()) {
        write(&whole[..n]);
        assert_eq!(look(&format!("{n} bytes")), (1, 0));
        tried += 1;
    }
    assert!(tried > 200, "{tried}");
    // Each was made again, and is whole.
    assert_eq!(fs::read(path).unwrap(), whole);
    assert_eq!(look("at last"), (0, 1));
    let stats = disk_cache_stats().unwrap();
    assert_eq!((stats.entries, stats.broken), (1, tried));
    gradus::cache::clear_disk_cache();
    assert_eq!(disk_cache_stats().unwrap().entries, 0);
    // The folder is gone: programs run, and that they are not kept is said once.
    fs::remove_dir_all(&folder.0).unwrap();
    let ((), warned) = warnings::collect(|| {
        assert_eq!(look("no folder"), (1, 0));
        assert_eq!(look("no folder"), (1, 0));
    });
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!(warned[0].kind(), gradus::warnings::WarningKind::DiskCache);
    gradus::cache::unset_disk_cache();
    assert_eq!(disk_cache_stats(), None);
    Ok(())
}
