//! A Rust file split into code and comments, so that a check for a word is not fooled by a string or a doc example.
//!
//! This is the smallest lexer that gets literals and comments right; it knows no grammar beyond balanced brackets.

use std::ops::Range;

/// One Rust file. `code` and `comments` are as long as the text, with spaces in place of what belongs elsewhere, so a
/// byte offset or a line number means the same in all three.
pub(crate) struct Source {
    /// The text without comments and without the contents of string and character literals.
    pub(crate) code: String,
    /// The comments alone, markers included.
    pub(crate) comments: String,
    /// Byte ranges of the items that exist only in test builds.
    pub(crate) test_items: Vec<Range<usize>>,
    /// Names of modules declared as `#[cfg(test)] mod name;`, whose text is in another file.
    pub(crate) test_modules: Vec<String>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Source {
        let (code, comments) = split(text);
        let mut source = Source { code, comments, test_items: Vec::new(), test_modules: Vec::new() };
        source.find_test_items();
        source
    }

    /// The number, from 1, of the line that holds a byte offset.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        1 + self.code.as_bytes()[..offset].iter().filter(|b| **b == b'\n').count()
    }

    pub(crate) fn is_test_only(&self, offset: usize) -> bool {
        self.test_items.iter().any(|r| r.contains(&offset))
    }

    fn find_test_items(&mut self) {
        let mut from = 0;
        while let Some(found) = self.code[from..].find('#') {
            let start = from + found;
            from = start + 1;
            let inner = self.code[from..].starts_with('!');
            let open = from + usize::from(inner);
            if !self.code[open..].starts_with('[') {
                continue;
            }
            let close = balanced_end(&self.code, open);
            if !is_test_cfg(&self.code[open..close]) {
                continue;
            }
            if inner {
                self.test_items.push(0..self.code.len());
                return;
            }
            let end = item_end(&self.code, close);
            let words: Vec<&str> = self.code[close..end].split_whitespace().collect();
            if let [.., "mod", name] = words.as_slice()
                && let Some(name) = name.strip_suffix(';')
            {
                self.test_modules.push(name.to_owned());
            }
            self.test_items.push(start..end);
            from = end;
        }
    }
}

/// Where `word` stands in `text` as a word of its own: `unsafe` is not in `unsafe_code`, nor `panic!` in `my_panic!`.
pub(crate) fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let bytes = text.as_bytes();
    let (first, last) = (word.as_bytes()[0], word.as_bytes()[word.len() - 1]);
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let joined_before = is_ident(first) && at > 0 && is_ident(bytes[at - 1]);
        let joined_after = is_ident(last) && bytes.get(at + word.len()).is_some_and(|b| is_ident(*b));
        !joined_before && !joined_after
    })
}

pub(crate) fn is_ident(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

/// `[cfg(test)]`, or `[cfg(all(..))]` with `test` among its conditions.
fn is_test_cfg(attribute: &str) -> bool {
    let text: String = attribute.chars().filter(|c| !c.is_whitespace()).collect();
    if text == "[cfg(test)]" {
        return true;
    }
    let Some(conditions) = text.strip_prefix("[cfg(all(") else { return false };
    !conditions.contains("any(") && !conditions.contains("not(") && words(conditions, "test").next().is_some()
}

/// The offset just after the bracket that closes the one at `open`.
fn balanced_end(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (i, b) in code.bytes().enumerate().skip(open) {
        match b {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return i + 1;
        }
    }
    code.len()
}

/// The offset just after the item that starts at `start`: its `;` or the end of its braces.
fn item_end(code: &str, start: usize) -> usize {
    let bytes = code.as_bytes();
    let mut i = start;
    while i < bytes.len() {
        match bytes[i] {
            b'(' | b'[' => i = balanced_end(code, i),
            b'{' => return balanced_end(code, i),
            b';' => return i + 1,
            // A field or a match arm: the attribute reaches no further than what encloses it.
            b')' | b']' | b'}' => return i,
            _ => i += 1,
        }
    }
    code.len()
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Comment,
    Literal,
}

fn split(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let (mut code, mut comments) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
    let mut i = 0;
    while i < bytes.len() {
        let (part, end) = next_part(bytes, i);
        // Literals keep their first and last byte in the code: `"` is what an attribute's reason is recognized by.
        for (offset, c) in text[i..end].char_indices() {
            let edge = offset == 0 || i + offset + 1 == end;
            let blank = |out: &mut String| (0..c.len_utf8()).for_each(|_| out.push(' '));
            let keep_code = part == Part::Code || (part == Part::Literal && edge);
            if c == '\n' || keep_code {
                code.push(c)
            } else {
                blank(&mut code)
            }
            if c == '\n' || part == Part::Comment { comments.push(c) } else { blank(&mut comments) }
        }
        i = end;
    }
    (code, comments)
}

/// What starts at `i`, and where it ends. Always moves on by at least one whole character.
fn next_part(bytes: &[u8], i: usize) -> (Part, usize) {
    let at = |k: usize| bytes.get(i + k).copied();
    match bytes[i] {
        b'/' if at(1) == Some(b'/') => {
            let length = bytes[i..].iter().position(|b| *b == b'\n');
            (Part::Comment, length.map_or(bytes.len(), |n| i + n))
        }
        b'/' if at(1) == Some(b'*') => (Part::Comment, block_comment_end(bytes, i)),
        b'"' => (Part::Literal, quoted_end(bytes, i, b'"')),
        b'r' if raw_may_start(bytes, i) => match raw_string_end(bytes, i) {
            Some(end) => (Part::Literal, end),
            None => (Part::Code, i + 1),
        },
        b'\'' if at(1) == Some(b'\\') => (Part::Literal, quoted_end(bytes, i, b'\'')),
        b'\'' if at(1).is_some() => {
            let end = char_end(bytes, i + 1);
            // Without a closing quote right after one character it is a lifetime or a label.
            if bytes.get(end) == Some(&b'\'') { (Part::Literal, end + 1) } else { (Part::Code, i + 1) }
        }
        _ => (Part::Code, char_end(bytes, i)),
    }
}

fn char_end(bytes: &[u8], i: usize) -> usize {
    let rest = bytes[i + 1..].iter().take_while(|b| **b & 0xC0 == 0x80).count();
    i + 1 + rest
}

fn quoted_end(bytes: &[u8], open: usize, quote: u8) -> usize {
    let mut i = open + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' if i + 1 < bytes.len() => i = char_end(bytes, i + 1),
            b if b == quote => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

/// Block comments nest in Rust.
fn block_comment_end(bytes: &[u8], open: usize) -> usize {
    let (mut i, mut depth) = (open, 0_usize);
    while i < bytes.len() {
        match (bytes[i], bytes.get(i + 1)) {
            (b'/', Some(b'*')) => (i, depth) = (i + 2, depth + 1),
            (b'*', Some(b'/')) => (i, depth) = (i + 2, depth - 1),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    bytes.len()
}

/// An `r` that begins a word, or follows the `b` or `c` that does (`br"…"`, `cr"…"`).
fn raw_may_start(bytes: &[u8], i: usize) -> bool {
    let ident_before = |k: usize| i >= k && is_ident(bytes[i - k]);
    !ident_before(1) || (matches!(bytes[i - 1], b'b' | b'c') && !ident_before(2))
}

/// The end of the raw string at `i`, or `None` where `r` is a name or begins a raw identifier.
fn raw_string_end(bytes: &[u8], i: usize) -> Option<usize> {
    let hashes = bytes[i + 1..].iter().take_while(|b| **b == b'#').count();
    let open = i + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let is_close = |k: usize| {
        let after = &bytes[k + 1..];
        bytes[k] == b'"' && after.len() >= hashes && after[..hashes].iter().all(|b| *b == b'#')
    };
    Some((open + 1..bytes.len()).find(|k| is_close(*k)).map_or(bytes.len(), |k| k + 1 + hashes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let source = Source::new(text);
        assert_eq!((source.code.len(), source.comments.len()), (text.len(), text.len()), "offsets must agree: {text}");
        source.code
    }

    #[test]
    fn literals_and_comments_leave_the_code() {
        assert_eq!(code("a(\"b\"); // c"), "a(\" \");     ");
        assert_eq!(code(r#"a("\"", "\\") b"#), r#"a("  ", "  ") b"#);
        assert_eq!(code("a /* b /* c */ d */ e"), "a                   e");
        assert_eq!(code("r#\"x \" y\"# z"), "r        # z");
        assert_eq!(code("br\"x\\\" z"), "br   \" z");
        assert_eq!(code("r#fn + for\"x\""), "r#fn + for\" \"");
        assert_eq!(code("\"é\" é"), "\"  \" é");
        assert_eq!(code("\"open"), "\"   n");
    }

    #[test]
    fn characters_are_told_from_lifetimes() {
        assert_eq!(code("f::<'a, 'b>('\"', '\\'', 'é', b'x') // y"), "f::<'a, 'b>(' ', '  ', '  ', b' ')     ");
        assert_eq!(code("'outer: loop { break 'outer }"), "'outer: loop { break 'outer }");
    }

    #[test]
    fn comments_are_kept_apart() {
        let source = Source::new("a(); // b \"c\nd(\"// e\")\n");
        assert_eq!(source.comments, "     // b \"c\n         \n");
    }

    #[test]
    fn words_stand_alone() {
        let at = |text: &'static str, word: &'static str| words(text, word).collect::<Vec<_>>();
        assert_eq!(at("unsafe_code unsafe fn not_unsafe", "unsafe"), [12]);
        assert_eq!(at("my_panic!() panic!() std::panic!()", "panic!"), [12, 26]);
        assert_eq!(at("x.unwrap() x.unwrap_or(1)", ".unwrap()"), [1]);
    }

    #[test]
    fn test_items_are_found() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { if x {} }\n}\nfn c() {}\n#[cfg(test)]\nuse d;\nfn e() {}\n";
        let source = Source::new(text);
        for (name, test_only) in [("a()", false), ("b()", true), ("c()", false), ("d;", true), ("e()", false)] {
            assert_eq!(text.find(name).map(|at| source.is_test_only(at)), Some(test_only), "{name}");
        }
        assert!(source.test_modules.is_empty());
        assert!(Source::new("#![cfg(test)]\nfn a() {}").is_test_only(15));
        assert!(Source::new("#[cfg(all(test, unix))] fn a() { b() }").is_test_only(34));
        for open in ["any(test, unix)", "not(test)", "all(unix, not(test))", "feature = \"test\""] {
            let text = format!("#[cfg({open})] fn a() {{}}");
            assert!(Source::new(&text).test_items.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_test_module_may_be_a_file() {
        assert_eq!(Source::new("#[cfg(test)]\npub(crate) mod checks;\nmod other;\n").test_modules, ["checks"]);
    }

    #[test]
    fn any_text_is_split_without_a_panic() {
        let pieces =
            ["\"", "'", "\\", "r", "#", "b", "/*", "*/", "//", "\n", "é", "[cfg(test)]", "{", "}", ";", "mod m"];
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..8 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
            }
            code(&text);
        }
    }
}
