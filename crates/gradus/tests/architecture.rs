//! `ARCHITECTURE.md` against the code: its list of stages is the way that a call takes, and everything it names stands where it says.

use gradus::prelude::*;

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the list of stages: the name, and the files with what stands in them.
fn stages() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the file");
    let rows = text.lines().skip_while(|l| !l.starts_with("| stage |")).skip(2).take_while(|l| l.starts_with('|'));
    let cells = |row: &str| row.split('|').map(|c| c.trim().to_string()).collect::<Vec<_>>();
    rows.map(cells).map(|c| (c[1].clone(), c[3].clone())).collect()
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn row_t2_the_list_of_stages_is_the_way_of_a_call() -> Result<()> {
    let f = jit(grad(|x: &Array| (x * x).sin().sum())).hunt(Hunt::Nan);
    let phases = f.phases(&Array::from([0.5_f64, 1.5]))?;
    let stages = stages();
    let passes = |name: &str| name.contains('…');
    let mut shown = phases.iter().map(|p| p.name).peekable();
    for (name, _) in &stages {
        let names = quoted(name);
        match (names.as_slice(), passes(name)) {
            // Stages that have nothing to show.
            ([], _) => {}
            ([first, last], true) => {
                assert_eq!(shown.next(), Some(*first));
                assert!(shown.by_ref().any(|p| p == *last), "{last} comes last of them");
            }
            ([one], false) => assert_eq!(shown.next(), Some(*one)),
            _ => panic!("what is {name}?"),
        }
    }
    assert_eq!(shown.next(), None);
    Ok(())
}

#[test]
fn what_the_list_names_stands_where_it_says() {
    let stages = stages();
    assert!(stages.len() > 10, "{stages:?}");
    for (stage, places) in stages {
        for place in places.split("; ") {
            let (file, names) = place.split_once(": ").unwrap_or_else(|| panic!("{stage}: {place}"));
            let file = quoted(file)[0];
            let text = std::fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{stage}: {file}: {e}"));
            for name in quoted(names) {
                let stands = ["fn", "struct", "const"].iter().any(|kind| {
                    let item = format!("{kind} {name}");
                    text.split(&item).skip(1).any(|rest| rest.starts_with(['(', '<', ' ', ':']))
                });
                assert!(stands, "{stage}: {name} is not in {file}");
            }
        }
    }
}
