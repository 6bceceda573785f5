//! Relative links of markdown files: a document that points at a file which moved is a document that lies.

use std::path::{Component, Path, PathBuf};

/// The targets that `text` links to, each with its line: inline links, images and reference definitions, but nothing
/// inside code.
pub(crate) fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if let Some(marker) = fence {
            if start.starts_with(marker) {
                fence = None;
            }
            continue;
        }
        fence = ["```", "~~~"].into_iter().find(|marker| start.starts_with(marker));
        if fence.is_some() {
            continue;
        }
        let prose = without_code_spans(line);
        for (at, _) in prose.match_indices("](") {
            found.extend(destination(&prose[at + 2..]).map(|target| (index + 1, target)));
        }
        if prose.trim_start().starts_with('[')
            && let Some((_, after)) = prose.split_once("]:")
        {
            found.extend(destination(after.trim_start()).map(|target| (index + 1, target)));
        }
    }
    found
}

/// The path that a target in the file `document` means, relative to the root; `None` where it is no path at all (an
/// address, a heading), an error where it leads out of the workspace.
pub(crate) fn resolve(document: &str, target: &str) -> Option<Result<PathBuf, String>> {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let has_scheme = path.split_once(':').is_some_and(|(scheme, _)| !scheme.contains('/'));
    if path.is_empty() || has_scheme || path.starts_with("//") {
        return None;
    }
    let path = path.replace("%20", " ");
    let mut resolved = match path.strip_prefix('/') {
        Some(_) => PathBuf::new(),
        None => Path::new(document).parent().map(Path::to_path_buf).unwrap_or_default(),
    };
    for part in Path::new(path.trim_start_matches('/')).components() {
        match part {
            Component::ParentDir if !resolved.pop() => {
                return Some(Err(format!("link `{target}` leads out of the workspace")));
            }
            Component::Normal(name) => resolved.push(name),
            _ => {}
        }
    }
    Some(Ok(resolved))
}

/// What stands before the closing parenthesis, white space or end, angle brackets taken off.
fn destination(rest: &str) -> Option<String> {
    if let Some(rest) = rest.strip_prefix('<') {
        return rest.split_once('>').map(|(target, _)| target.to_owned());
    }
    let mut depth = 0;
    let mut target = String::new();
    for c in rest.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => break,
            ')' => depth -= 1,
            c if c.is_whitespace() => break,
            _ => {}
        }
        target.push(c);
    }
    (!target.is_empty()).then_some(target)
}

/// The line with its `code` blanked. A run of backticks that is never closed is plain text.
fn without_code_spans(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        let ticks = rest[open..].len() - rest[open..].trim_start_matches('`').len();
        let body = &rest[open + ticks..];
        out.push_str(&rest[..open]);
        rest = match closing_run(body, ticks) {
            Some(end) => {
                out.push(' ');
                &body[end..]
            }
            None => {
                out.push_str(&rest[open..open + ticks]);
                body
            }
        };
    }
    out.push_str(rest);
    out
}

/// The offset just after the first run of exactly `ticks` backticks.
fn closing_run(body: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = body[at..].find('`') {
        let start = at + found;
        let length = body[start..].len() - body[start..].trim_start_matches('`').len();
        at = start + length;
        if length == ticks {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_link_is_seen() {
        let text = "[a](b.md) and ![c](d/e.png \"title\")\n\n[f]: g.md\n[h](<i j.md>) [k](l_(m).md)\n";
        let want = [(1, "b.md"), (1, "d/e.png"), (3, "g.md"), (4, "i j.md"), (4, "l_(m).md")];
        let got = targets(text);
        assert_eq!(got.iter().map(|(line, t)| (*line, t.as_str())).collect::<Vec<_>>(), want);
    }

    #[test]
    fn code_holds_no_links() {
        assert!(targets("```rust\nx[0](y)\n```\n`a[1](b)` ``c`[2](d)``\n~~~\n[x](y)\n~~~\n").is_empty());
        assert_eq!(targets("a ` b [c](d)\n").len(), 1);
    }

    #[test]
    fn paths_are_resolved_from_their_document() {
        let ok = |document, target| resolve(document, target).and_then(Result::ok);
        assert_eq!(ok("README.md", "docs/a.md#part"), Some("docs/a.md".into()));
        assert_eq!(ok("docs/b/c.md", "../a.md"), Some("docs/a.md".into()));
        assert_eq!(ok("docs/a.md", "/README.md"), Some("README.md".into()));
        assert_eq!(ok("docs/a.md", "./x%20y.md"), Some("docs/x y.md".into()));
        for no_path in ["https://example.org/a.md", "mailto:a@example.org", "#part", "//example.org"] {
            assert!(resolve("README.md", no_path).is_none(), "{no_path}");
        }
        assert!(matches!(resolve("docs/a.md", "../../b.md"), Some(Err(_))));
    }
}
