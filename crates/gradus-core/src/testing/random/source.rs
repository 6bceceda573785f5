//! Where decisions come from: the bytes of a fuzzer, or a stream of pseudo-random ones.

/// A stream of decisions.
pub struct Source<'a> {
    bytes: &'a [u8],
    /// The state of the generator behind a seed; without one the stream ends with the bytes.
    state: Option<u64>,
}

impl<'a> Source<'a> {
    /// Decisions of given bytes; zeros when they are used up.
    pub fn bytes(bytes: &'a [u8]) -> Source<'a> {
        Source { bytes, state: None }
    }

    /// Endless decisions, the same for the same seed.
    pub fn seed(seed: u64) -> Source<'static> {
        Source { bytes: &[], state: Some(seed) }
    }

    /// Whether nothing but zeros will come.
    pub fn is_empty(&self) -> bool {
        self.state.is_none() && self.bytes.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        if let Some(state) = &mut self.state {
            // splitmix64: every seed gives a good stream, neighbouring seeds unlike ones.
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            return ((z ^ (z >> 31)) >> 24) as u8;
        }
        let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        *first
    }

    /// A number below `n`; 0 if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        match n {
            0 | 1 => 0,
            2..=256 => self.byte() as usize % n,
            _ => (self.byte() as usize + 256 * self.byte() as usize + 65536 * self.byte() as usize) % n,
        }
    }

    /// True so many times of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }

    /// A number from 0 to 1, both included, in steps fine enough that two are seldom equal.
    pub fn unit(&mut self) -> f64 {
        (self.byte() as f64 + 256.0 * self.byte() as f64) / 65535.0
    }
}
