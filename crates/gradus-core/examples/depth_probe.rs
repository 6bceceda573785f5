//! Temporary probe.
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        let open = "fn f(x0: f64[]) -> f64[] {\n x1: f64[] = call{program=";
        let close = "} x0\n return x1\n}";
        let inner = "fn f(x0: f64[]) -> f64[] {\n x1: f64[] = sin x0\n return x1\n}";
        let text = format!("{}{inner}{}", open.repeat(n), close.repeat(n));
        let p: gradus_core::Program = text.parse().unwrap();
        println!("parsed");
        gradus_core::program::verify(&p).unwrap();
        println!("verified {}", p.to_string().len());
        gradus_core::interpret(&p, &[gradus_core::Array::from(1.0f64)]).unwrap();
        println!("ran");
        let (d, _) = gradus_core::transform::jvp(&p, &[true]).unwrap();
        println!("jvp {}", d.to_string().len());
        let l = gradus_core::transform::vjp(&p, &[true]).unwrap();
        println!("vjp {}", l.linear.to_string().len());
        gradus_core::transform::vmap(&p, &[true], &gradus_core::Dim::from(3usize)).unwrap();
        println!("vmap");
        drop(p);
        println!("dropped");
    }).unwrap().join().unwrap();
}
