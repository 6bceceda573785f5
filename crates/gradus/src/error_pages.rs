//! The pages on errors: what each code means, why the rule is there, and what to write instead.

/// The page on an error of this code, such as `G0006`, as Markdown. `gradus explain G0006` prints it.
///
/// ```
/// use gradus::prelude::*;
///
/// let error = Array::from([1.0, 2.0]).item::<f64>().unwrap_err();
/// assert!(gradus::extend::error_page(error.kind().code()).is_some_and(|page| page.contains("shape")));
/// ```
pub fn error_page(code: &str) -> Option<&'static str> {
    Some(match code {
        "G0001" => include_str!("errors/G0001.md"),
        "G0002" => include_str!("errors/G0002.md"),
        "G0003" => include_str!("errors/G0003.md"),
        "G0004" => include_str!("errors/G0004.md"),
        "G0005" => include_str!("errors/G0005.md"),
        "G0006" => include_str!("errors/G0006.md"),
        "G0007" => include_str!("errors/G0007.md"),
        "G0008" => include_str!("errors/G0008.md"),
        "G0009" => include_str!("errors/G0009.md"),
        "G0010" => include_str!("errors/G0010.md"),
        "G0011" => include_str!("errors/G0011.md"),
        "G0012" => include_str!("errors/G0012.md"),
        "G0013" => include_str!("errors/G0013.md"),
        "G0014" => include_str!("errors/G0014.md"),
        "G0015" => include_str!("errors/G0015.md"),
        "G0016" => include_str!("errors/G0016.md"),
        "G0017" => include_str!("errors/G0017.md"),
        "G0018" => include_str!("errors/G0018.md"),
        "G0019" => include_str!("errors/G0019.md"),
        "G0020" => include_str!("errors/G0020.md"),
        "G0021" => include_str!("errors/G0021.md"),
        "G0022" => include_str!("errors/G0022.md"),
        "G0023" => include_str!("errors/G0023.md"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use gradus_core::ErrorKind;

    #[test]
    fn every_kind_of_error_has_a_page() {
        let summary =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/SUMMARY.md")).unwrap();
        for kind in ErrorKind::ALL {
            let page = super::error_page(kind.code()).unwrap_or_else(|| panic!("no page on {}", kind.code()));
            assert!(page.starts_with(&format!("# {}: {}\n", kind.code(), kind.title())), "{page}");
            // It says what happens with code that runs, and what to do.
            assert!(page.contains("```rust") && page.len() > 400, "{page}");
            let link = format!("[{}: {}](errors/{}.md)", kind.code(), kind.title(), kind.code());
            assert!(summary.contains(&link), "{link} is not in the summary of the book");
        }
        assert_eq!(super::error_page("G9999"), None);
    }
}
