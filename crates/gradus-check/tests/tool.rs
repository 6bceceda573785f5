//! The tool itself: its programs are valid, its files read back, its shrinker finds what was planted, its shares are the whole.

use gradus_check::case::Case;
use gradus_check::{case_of, enumerate, generate, shrink};
use gradus_core::program::verify;

#[test]
fn random_programs_are_valid_and_of_many_kinds() {
    gradus::warnings::set_warning_handler(|_| {});
    let mut equations = 0;
    let mut names = std::collections::BTreeSet::new();
    let mut symbolic = 0;
    for seed in 0..300 {
        let case = generate::case(seed);
        verify(&case.program).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{case}"));
        equations += case.program.equations().len();
        names.extend(case.program.equations().iter().map(|e| e.op().name()));
        symbolic += usize::from(case.program.is_symbolic());
        assert_eq!(generate::case(seed).program, case.program, "seed {seed} is not one program");
        for (input, ty) in case.inputs(&case.sizes[0], 0).iter().zip(case.program.inputs()) {
            assert_eq!(input.dtype(), ty.dtype(), "seed {seed}");
        }
    }
    assert!(equations > 300 * 6, "{equations} equations");
    assert!(names.len() > 60, "{} operations: {names:?}", names.len());
    assert!(symbolic > 5, "{symbolic} symbolic programs");
}

#[test]
fn a_case_reads_back_from_its_text() {
    for seed in 0..40 {
        let case = generate::case(seed);
        let back = Case::parse(&case.to_string()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{case}"));
        assert_eq!(back.to_string(), case.to_string());
        assert_eq!(back.program, case.program);
        let (a, b) = (case.inputs(&case.sizes[0], 1), back.inputs(&back.sizes[0], 1));
        assert!(a.iter().zip(&b).all(|(a, b)| format!("{a:?}") == format!("{b:?}")));
    }
    assert!(Case::parse("# seed: x\nfn f(x0: f64[]) -> (f64[]) {\n  return x0\n}\n").is_err());
    assert!(Case::parse("no program").is_err());
}

#[test]
fn what_was_planted_is_found_and_made_small() {
    // The fault: a maximum over an axis of at least four, of something that is not an input itself.
    let fails = |c: &Case| {
        let p = &c.program;
        p.equations().iter().any(|e| {
            e.op().name() == "reduce_max"
                && p.operands(e)[0].value().is_some_and(|v| v.index() >= p.inputs().len())
                && p.ty(p.operands(e)[0]).shape().iter().any(|d| d.as_usize().is_some_and(|n| n >= 4))
        })
    };
    let text = "fn f(x0: f64[9,17], x1: f64[9,17]) -> (f64[9], f64[9,17], f64[17,9]) {
  x2: f64[9,17] = sin x0
  x3: f64[9,17] = mul x2 x1
  x4: f64[9,17] = add x3 x2
  x5: f64[9] = reduce_max{axes=[1]} x4
  x6: f64[17,9] = transpose{axes=[1,0]} x4
  x7: f64[9,17] = broadcast{shape=[9,17], axes=[0]} x5
  x8: f64[9,17] = sub x4 x7
  return x5, x8, x6
}
";
    let mut case = Case::parse(text).unwrap();
    case.seed = 7;
    let mut tried = 0;
    let small = shrink::shrink(&case, 300, &mut |c| {
        tried += 1;
        verify(&c.program).unwrap();
        fails(c)
    });
    assert!(fails(&small) && tried > 3);
    assert_eq!(small.program.equations().len(), 2, "{small}");
    assert_eq!((small.program.inputs().len(), small.program.outputs().len()), (1, 1), "{small}");
    let largest = small.program.inputs()[0].shape().iter().filter_map(|d| d.as_usize()).max();
    assert_eq!(largest, Some(4), "{small}");
}

#[test]
fn shares_of_the_enumeration_are_the_whole() {
    let count = enumerate::count();
    assert!((500_000..1_000_000).contains(&count), "{count}");
    for n in [1, 7, 500] {
        let shares = (0..n).map(|k: u64| (count - k).div_ceil(n)).sum::<u64>();
        assert_eq!(shares, count);
    }
    assert!((0..400).filter(|k| case_of("enumerate", k * 1873).is_some()).count() > 150);
}
