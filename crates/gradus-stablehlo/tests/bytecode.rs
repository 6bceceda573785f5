//! Portable bytecode.
use gradus_stablehlo::module::{Attribute, Function, Module, Operation, Region, Visibility};
use gradus_stablehlo::{read_bytecode, read_one};

fn forget(region: &mut Region) {
    for op in &mut region.operations {
        op.place = Default::default();
        op.regions.iter_mut().for_each(forget);
    }
}

fn show(op: &Operation, indent: usize, out: &mut Vec<String>) {
    out.push(format!("{:indent$}{:?} = {} {:?} {:?}", "", op.results, op.name, op.operands, op.attributes));
    for r in &op.regions {
        out.push(format!("{:indent$}region {:?}", "", r.arguments));
        r.operations.iter().for_each(|o| show(o, indent + 2, out));
    }
}

fn lines(f: &Function) -> Vec<String> {
    let mut out =
        vec![format!("{} {:?} {:?} {:?} {:?}", f.name, f.attributes, f.arguments, f.results, f.body.arguments)];
    f.body.operations.iter().for_each(|o| show(o, 1, &mut out));
    out.extend(f.values.iter().enumerate().map(|(i, t)| format!("{i} {t:?}")));
    out
}

fn compare(what: &str, a: &Module, b: &Module) -> usize {
    let mut wrong = 0;
    if (a.functions.len(), &a.name) != (b.functions.len(), &b.name)
        || a.attributes != b.attributes
        || a.others.len() != b.others.len()
    {
        println!(
            "{what}: heads differ {:?} {:?} {:?} {:?} / {:?} {:?} {:?} {:?}",
            a.functions.len(),
            a.name,
            a.attributes,
            a.others,
            b.functions.len(),
            b.name,
            b.attributes,
            b.others
        );
        wrong += 1;
    }
    for (x, y) in a.functions.iter().zip(&b.functions) {
        let (p, q) = (lines(x), lines(y));
        if p != q {
            wrong += 1;
            for (i, (l, m)) in p.iter().zip(&q).enumerate() {
                if l != m {
                    println!("{what}: {} line {i}\n  bytecode {l}\n  text     {m}", x.name);
                    break;
                }
            }
            if p.len() != q.len() {
                println!("{what}: {} {} lines, {} lines", x.name, p.len(), q.len());
            }
        }
    }
    wrong
}

#[test]
fn folder() {
    let Ok(dir) = std::env::var("BC") else { return };
    let texts = std::env::var("TEXTS").unwrap_or(dir.clone());
    let suffix = std::env::var("SUFFIX").unwrap_or(".mlir".into());
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "bc"))
        .collect();
    names.sort();
    let mut wrong = 0;
    for p in names {
        let bytes = std::fs::read(&p).unwrap();
        match read_bytecode(&p.to_string_lossy(), &bytes) {
            Ok(m) => {
                let text = format!("{texts}/{}{suffix}", p.file_stem().unwrap().to_string_lossy());
                match std::fs::read_to_string(&text) {
                    Ok(t) => match read_one(&text, &t) {
                        Ok(t) => {
                            let w = compare(&p.file_name().unwrap().to_string_lossy(), &m, &t);
                            wrong += w;
                            println!("{}: {} functions, {w} wrong", p.display(), m.functions.len())
                        }
                        Err(e) => println!("TEXT {e}"),
                    },
                    Err(_) => println!("{}: no text", p.display()),
                }
            }
            Err(e) => println!("{}: ERROR {e}", p.display()),
        }
    }
    println!("wrong {wrong}");
}
