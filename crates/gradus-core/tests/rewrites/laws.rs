//! Every law in the source is applied in some enumeration, and has its line in `laws.txt`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::Seen;
use crate::{boxes, chains, dots, gathers, loops, scalars, scatters};

/// The names of laws in the source of the optimizer: what `by` and `applied` are given.
fn in_source() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/optimize");
    let mut laws = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for call in ["by(", "applied("] {
            for rest in text.split(call).skip(1) {
                let Some(law) = rest.trim_start().strip_prefix('"').and_then(|r| r.split('"').next()) else { continue };
                laws.insert(law.to_owned(), name.clone());
            }
        }
    }
    laws
}

#[test]
fn every_law_is_applied_and_kept() {
    let mut seen: Vec<&'static Seen> = scalars::seen();
    seen.extend([&*scalars::CONVERSIONS, &*scalars::RELAXED, &*scalars::QUOTIENTS]);
    seen.extend(chains::seen());
    seen.extend(dots::seen());
    seen.extend(gathers::seen());
    seen.extend(scatters::seen());
    seen.extend(boxes::seen());
    seen.extend(loops::seen());
    let mut shown: BTreeMap<&str, &str> = BTreeMap::new();
    for (law, example) in seen.iter().flat_map(|s| &s.laws) {
        shown.entry(law).or_insert(example);
    }
    let source = in_source();
    assert!(source.len() > 80, "only {} laws were found in the source", source.len());
    let missing: Vec<_> = source.iter().filter(|(law, _)| !shown.contains_key(law.as_str())).collect();
    assert!(missing.is_empty(), "no enumeration applies these laws: {missing:#?}");
    let mut text = String::from(
        "# Every law of the optimizer with the first expression that it is checked on, before and after.\n",
    );
    let mut files: Vec<&String> = source.values().collect();
    files.sort();
    files.dedup();
    for file in files {
        text += &format!("\n## {file}\n");
        for (law, _) in source.iter().filter(|(_, f)| *f == file) {
            text += &format!("\n{law}\n    {}\n", shown[law.as_str()]);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rewrites/laws.txt");
    if std::env::var("GRADUS_BLESS").is_ok_and(|v| v == "1") {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    for (k, (have, want)) in text.lines().zip(kept.lines()).enumerate() {
        assert_eq!(have, want, "line {} of laws.txt; GRADUS_BLESS=1 writes it again", k + 1);
    }
    assert_eq!(text.lines().count(), kept.lines().count(), "laws.txt; GRADUS_BLESS=1 writes it again");
}
