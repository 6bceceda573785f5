//! Code for TPUs that are not here. `libtpu` may end the process that uses it, so it is used by a child.

use std::process::Command;

use gradus_core::Program;
use gradus_pjrt::{Plugin, Topology};

/// What a child process is told by.
const CHILD: &str = "GRADUS_PJRT_TEST_CHILD";

#[test]
fn a_program_is_compiled_for_a_tpu_that_is_not_here() {
    if std::env::var_os(CHILD).is_none() {
        let itself = std::env::current_exe().unwrap();
        let name = "a_program_is_compiled_for_a_tpu_that_is_not_here";
        let run = |query: Option<&str>| {
            let mut child = Command::new(&itself);
            child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").env_remove("TPU_SKIP_MDS_QUERY");
            query.map(|q| child.env("TPU_SKIP_MDS_QUERY", q));
            child.output().unwrap()
        };
        let with = run(Some("1"));
        let said = String::from_utf8_lossy(&with.stdout).into_owned();
        assert!(with.status.success(), "{said}\n{}", String::from_utf8_lossy(&with.stderr));
        if said.contains("NOT RUN") {
            println!("NOT RUN: no TPU plugin of PJRT");
            return;
        }
        assert!(said.contains("8 devices of TPU v5"), "{said}");
        let without = run(None);
        let said = String::from_utf8_lossy(&without.stdout).into_owned();
        assert!(without.status.success() && said.contains("TPU_SKIP_MDS_QUERY=1"), "{said}");
        return;
    }
    let plugin = match Plugin::find("tpu") {
        Ok(plugin) => plugin,
        Err(e) => return println!("NOT RUN: {e}"),
    };
    assert!(Topology::new(plugin, "no such thing").is_err());
    let topology = Topology::new(plugin, "v5e:2x4").unwrap();
    println!("{} devices of {}", topology.devices(), topology.kind());
    let program: Program = "fn f(x0: f32[64,64]) -> f32[64,64] {\n  x1: f32[64,64] = sin x0\n  x2: f32[64,64] = mul x1 x0\n  return x2\n}\n".parse().unwrap();
    let code = topology.compile(&program, &Default::default()).unwrap();
    assert!(code.write().unwrap().len() > 100);
    assert!(topology.compile_module(b"module {").is_err());
}
