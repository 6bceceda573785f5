//! Why a call would find its program ready, or not: the key, compared with the nearest one that is kept.

use std::fmt;

use gradus_core::Mode;
use gradus_core::pipeline::Pipeline;
use gradus_core::trace::Guard;

use super::budget::Budget;
use super::key::{CallKey, KeyPart};

/// A part of the key that differs from the nearest entry's.
#[derive(Clone, Debug)]
pub struct Difference {
    path: String,
    old: Option<String>,
    new: Option<String>,
    frozen: bool,
}

impl Difference {
    /// Where: `argument 1`, `argument 0.scale`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What the nearest entry has there.
    pub fn before(&self) -> Option<&str> {
        self.old.as_deref()
    }

    /// What the call has there.
    pub fn now(&self) -> Option<&str> {
        self.new.as_deref()
    }

    /// Whether it is a frozen value, rather than a type or structure.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (old, new) = (self.before().unwrap_or("nothing"), self.now().unwrap_or("nothing"));
        write!(f, "{}: {old} → {new}", self.path)?;
        if self.frozen { f.write_str(" (frozen: part of the key)") } else { Ok(()) }
    }
}

/// The parts in which two keys differ, by their paths.
pub(super) fn differences(old: &CallKey, new: &CallKey) -> Vec<Difference> {
    let one = |old: Option<&KeyPart>, new: Option<&KeyPart>| {
        let any = old.or(new)?;
        Some(Difference {
            path: any.path().to_string(),
            old: old.map(ToString::to_string),
            new: new.map(ToString::to_string),
            frozen: any.is_frozen(),
        })
    };
    // Parts are in the order of the tree, so those of one path stand together; a path may have several.
    let mut found = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old.parts.len() || j < new.parts.len() {
        match (old.parts.get(i), new.parts.get(j)) {
            (Some(a), Some(b)) if a.path() == b.path() => {
                if !a.same(b) {
                    found.extend(one(Some(a), Some(b)));
                }
                i += 1;
                j += 1;
            }
            (Some(a), b) if b.is_none() || !new.parts[j..].iter().any(|p| p.path() == a.path()) => {
                found.extend(one(Some(a), None));
                i += 1;
            }
            (_, Some(b)) => {
                found.extend(one(None, Some(b)));
                j += 1;
            }
            (Some(_), None) | (None, None) => i += 1,
        }
    }
    found
}

/// What besides the arguments makes the key.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) function: String,
    pub(super) stack: String,
    pub(super) mode: Mode,
    pub(super) pipeline: Pipeline,
    pub(super) budget: Budget,
    /// How many programs there were, and what to do if they are too many.
    pub(super) history: (usize, Vec<String>),
}

/// Whether a call would find its program ready, and if not, what differs from the nearest entry.
#[derive(Clone, Debug)]
pub struct Explanation {
    about: About,
    hit: bool,
    key: Vec<KeyPart>,
    entries: usize,
    differences: Vec<Difference>,
    guard: Option<Guard>,
    /// What is known of the code that is ready.
    facts: Vec<String>,
}

impl Explanation {
    /// What is known of a call: `found` has the facts about its code, if that is ready.
    pub(super) fn new(
        about: About,
        found: Option<Vec<String>>,
        key: &CallKey,
        entries: Vec<(&CallKey, Option<&Guard>)>,
    ) -> Explanation {
        let hit = found.is_some();
        let count = entries.len();
        let nearest = entries
            .into_iter()
            .map(|(k, guard)| (differences(k, key), guard))
            .min_by_key(|(d, guard)| (d.len(), guard.is_some()));
        let (differences, guard) = match nearest {
            Some((d, guard)) if !hit => {
                let guard = guard.filter(|_| d.is_empty()).cloned();
                (d, guard)
            }
            _ => (Vec::new(), None),
        };
        let facts = found.unwrap_or_default();
        Explanation { about, hit, key: key.parts.clone(), entries: count, differences, guard, facts }
    }

    /// Whether the program is ready.
    pub fn is_hit(&self) -> bool {
        self.hit
    }

    /// What differs from the nearest entry; empty for a hit and for the first call.
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// What to do about the number of programs, if they are more than the budget.
    pub fn proposals(&self) -> &[String] {
        &self.about.history.1
    }

    /// The parts of the call's key.
    pub fn key(&self) -> &[KeyPart] {
        &self.key
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of `{}`", if self.hit { "hit" } else { "miss" }, self.about.function)?;
        writeln!(f, "  transformations: {}", self.about.stack)?;
        let pipeline = &self.about.pipeline;
        writeln!(
            f,
            "  options: {:?} tracing, {:?} rewrites, backend {}, device {}, any layout",
            self.about.mode,
            pipeline.exactness,
            pipeline.backend.name(),
            pipeline.backend.device()
        )?;
        if pipeline.hunt.is_on() {
            writeln!(f, "  hunting: {:?}", pipeline.hunt)?;
        }
        let compiler = pipeline.backend.about();
        if !compiler.is_empty() {
            writeln!(f, "  compiler: {compiler}")?;
        }
        for fact in &self.facts {
            writeln!(f, "  {fact}")?;
        }
        let (programs, proposals) = &self.about.history;
        writeln!(f, "  programs: {programs}, budget {}", self.about.budget.programs)?;
        for proposal in proposals {
            writeln!(f, "    {proposal}")?;
        }
        for part in &self.key {
            writeln!(f, "  {part:?}")?;
        }
        if self.hit {
            return Ok(());
        }
        if self.entries == 0 {
            return writeln!(f, "  nothing is kept yet: this would be the first program");
        }
        writeln!(f, "  nearest of {} kept:", self.entries)?;
        for d in &self.differences {
            writeln!(f, "    {d}")?;
        }
        if let Some(g) = &self.guard {
            writeln!(f, "    the value read at {} was {}, and is another now", g.place, g.observed)?;
        }
        Ok(())
    }
}
