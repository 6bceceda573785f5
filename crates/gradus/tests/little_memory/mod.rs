//! A test that runs again in a process of its own whose address space is bounded: what asks for more than there is must not end this one.

use std::process::Command;

/// What the child process may have, in KiB.
const LIMIT: usize = 6 << 20;
/// Set in the child process.
const CHILD: &str = "GRADUS_TEST_LITTLE_MEMORY";

/// Runs `child` in a process of its own, as the test of this name; it must end well and say this.
pub fn in_a_child(test: &str, says: &str, child: fn()) {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let script = format!("ulimit -v {LIMIT} && exec \"$0\" --exact {test} --nocapture --test-threads 1");
    let exe = std::env::current_exe().unwrap();
    // One thread: each of them would take address space of its own.
    let run = Command::new("sh")
        .args(["-c", &script])
        .arg(exe)
        .env(CHILD, "1")
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && said.contains(says), "{:?}\n{said}", run.status);
}
