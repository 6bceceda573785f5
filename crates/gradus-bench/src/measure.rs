//! Measuring: each case is made ready everywhere, checked, and then run in rounds in which everyone has a turn, so that
//! what disturbs the machine disturbs all alike.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use gradus::DType;
use gradus::cache::clear_executables;

use crate::Result;
use crate::cases::{Call, Family, Measure, Peers, size_text};
use crate::check::{Described, distance};
use crate::clock::{Started, Taken, timed};
use crate::peers::{CPeer, PythonPeer, Rounding, Silence};
use crate::table::{Row, time};
use crate::tier::{Tier, call_into};

/// How thorough a run is.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub quick: bool,
    /// A call of ours that is foreseen to take longer is not made.
    pub cap: Duration,
    /// What passes between turns at least, so that threads that one player left waiting are asleep in the next one's turn.
    pub pause: Duration,
}

impl Effort {
    /// The least time of one turn.
    pub fn turn_ns(self) -> f64 {
        if self.quick { 2e6 } else { 1.5e7 }
    }

    /// How many turns everyone has.
    pub fn rounds(self) -> usize {
        if self.quick { 3 } else { 9 }
    }
}

/// The longest that a peer may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The part of a turn's time that passes before the next one.
const AFTERMATH: u32 = 4;
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Inputs larger than this are not made again to time a first result again.
const LARGE: usize = 1_000_000;

/// Everyone who takes part, and what is known of how long things take.
pub struct Bench {
    tiers: Vec<Tier>,
    one_core: bool,
    effort: Effort,
    jax: PythonPeer,
    numpy: PythonPeer,
    /// Work and nanoseconds of the last size measured.
    seen: HashMap<(&'static str, DType, &'static str), (f64, f64)>,
    /// Families that JAX had no patience left for.
    slow_in_jax: HashSet<&'static str>,
    /// No peer is asked.
    pub alone: bool,
    /// Cases in which someone computed something else.
    pub disagreements: Vec<String>,
}

/// One who takes turns.
enum Player<'a> {
    Ours(&'a Call),
    /// A call whose results arrive later: it waits for them, or only for those of the last one.
    Device(&'a Call, bool),
    C(&'a mut CPeer),
    Python(&'a mut PythonPeer),
}

impl Player<'_> {
    /// What one of so many calls takes.
    fn run(&mut self, reps: u64) -> std::result::Result<Taken, Silence> {
        match self {
            Player::Ours(call) => Ok(timed(reps, || call.run())),
            Player::Device(call, false) => Ok(timed(reps, || call.run_to_end())),
            Player::Device(call, true) => {
                let started = Started::now();
                (1..reps).for_each(|_| call.run());
                call.run_to_end();
                Ok(started.each(reps))
            }
            Player::C(peer) => Ok(timed(reps, || peer.run())),
            Player::Python(peer) => peer.run(reps, PATIENCE * 2),
        }
    }
}

/// Ours at one size: the call, or why there is none.
struct Ours {
    tier: Tier,
    call: Option<Call>,
    first: Option<f64>,
    results: Option<Vec<Described>>,
    note: String,
}

impl Bench {
    /// A bench for these tiers.
    pub fn new(tiers: Vec<Tier>, one_core: bool, effort: Effort) -> Bench {
        Bench {
            tiers,
            one_core,
            effort,
            jax: PythonPeer::new("jax_peer.py", one_core),
            numpy: PythonPeer::new("numpy_peer.py", one_core),
            seen: HashMap::new(),
            slow_in_jax: HashSet::new(),
            alone: false,
            disagreements: Vec::new(),
        }
    }

    /// A bench for a device: XLA's tier beside JAX on the same one.
    pub fn of_device(effort: Effort) -> Bench {
        let bench = Bench::new(vec![Tier::Xla], false, effort);
        Bench { jax: PythonPeer::new("jax_peer.py", false).on_device(), ..bench }
    }

    /// Measures a family at a size: a row for each tier.
    pub fn rows(&mut self, family: &Family, size: &[usize], dtype: DType) -> Result<Vec<Row>> {
        let name = format!("{} {} {dtype}", family.name, size_text(size));
        let inputs = (family.inputs)(size);
        let mut notes = Vec::new();

        let mut ours = Vec::new();
        for tier in self.tiers.clone() {
            ours.push(self.prepare_ours(family, size, dtype, tier));
        }
        let peers = if self.alone { Peers { c: false, jax: false, numpy: false } } else { family.peers };
        // Our own function, compiled by XLA: what another compiler makes of the same program.
        let with_xla = !self.alone && family.measure == Measure::Calls && !self.tiers.contains(&Tier::Xla);
        let xla = (with_xla && Tier::Xla.is_available()).then(|| self.prepare_ours(family, size, dtype, Tier::Xla));
        if let Some(x) = xla.as_ref().filter(|x| !x.note.is_empty()) {
            notes.push(format!("XLA: {}", x.note));
        }
        let in_c = |rounding: Rounding| -> Result<CPeer> {
            let buffers = family.buffers(size, dtype);
            let how = (!self.one_core, rounding);
            let mut peer = CPeer::new(family.peer(), size, dtype, how, buffers, &(family.outputs)(size))?;
            peer.run();
            Ok(peer)
        };
        let mut c = if peers.c { Some(in_c(Rounding::Fast)?) } else { None };
        let mut exact = if peers.c && family.beside_exact() { Some(in_c(Rounding::Exact)?) } else { None };
        let mut jax_first = None;
        if peers.jax && self.slow_in_jax.contains(family.name) {
            notes.push(format!("JAX: more than {} s", PATIENCE.as_secs()));
        } else if peers.jax {
            match self.jax.prepare(family.peer(), size, dtype, &inputs, PATIENCE) {
                Ok(ns) => jax_first = Some(ns),
                Err(silence) => {
                    if matches!(silence, Silence::Slow(_)) {
                        self.slow_in_jax.insert(family.name);
                    }
                    notes.push(excuse("JAX", &silence));
                }
            }
        }
        let mut with_numpy = false;
        if peers.numpy {
            match self.numpy.prepare(family.peer(), size, dtype, &inputs, PATIENCE) {
                Ok(_) => with_numpy = true,
                Err(silence) => notes.push(excuse("NumPy", &silence)),
            }
        }

        // Everyone is compared with the first who has a result.
        let mut results: Vec<(&str, Vec<Described>)> = Vec::new();
        for o in &ours {
            results.extend(o.results.clone().map(|r| (o.tier.name(), r)));
        }
        results.extend(xla.as_ref().and_then(|x| x.results.clone()).map(|r| ("XLA", r)));
        results.extend(c.as_ref().map(|c| ("C", c.results())));
        results.extend(exact.as_ref().map(|c| ("exact C", c.results())));
        if jax_first.is_some() {
            match self.jax.results(PATIENCE) {
                Ok(r) => results.push(("JAX", r)),
                Err(silence) => notes.push(excuse("JAX", &silence)),
            }
        }
        if with_numpy {
            match self.numpy.results(PATIENCE) {
                Ok(r) => results.push(("NumPy", r)),
                Err(silence) => notes.push(excuse("NumPy", &silence)),
            }
        }
        if let Some(((first, reference), others)) = results.split_first() {
            for (other, result) in others {
                let off = distance(reference, result);
                if off > family.tolerance(dtype) {
                    let text = format!("{other} differs from {first} by {off:.1e}");
                    self.disagreements.push(format!("{name}: {text}"));
                    notes.push(text);
                }
            }
        }

        let mut row = Row::new(family, size, dtype);
        row.first[1] = jax_first;
        if family.measure == Measure::FirstResult {
            let again = self.first_again(family, size, dtype, &ours, &mut row.first[1]);
            for (o, ns) in ours.iter_mut().zip(again) {
                o.first = ns;
            }
            return Ok(finish(row, ours, notes));
        }

        let mut players: Vec<(usize, Player<'_>)> = Vec::new();
        for (i, o) in ours.iter().enumerate() {
            players.extend(o.call.as_ref().map(|call| (i, player(o.tier, call, family.measure))));
        }
        let tiers = ours.len();
        players.extend(
            xla.as_ref().and_then(|x| x.call.as_ref()).map(|call| (tiers + 3, player(Tier::Xla, call, family.measure))),
        );
        players.extend(c.as_mut().map(|c| (tiers, Player::C(c))));
        players.extend(exact.as_mut().map(|c| (tiers + 4, Player::C(c))));
        if jax_first.is_some() {
            players.push((tiers + 1, Player::Python(&mut self.jax)));
        }
        if with_numpy {
            players.push((tiers + 2, Player::Python(&mut self.numpy)));
        }
        let turns = take_turns(&mut players, self.effort, tiers + 5, &mut notes);
        drop(players);

        let mut rows = Vec::new();
        let scratch =
            (family.measure == Measure::CallsAndScratch && peers.jax).then(|| self.jax.memory(PATIENCE)).flatten();
        let again = self.first_again(family, size, dtype, &ours, &mut row.first[1]);
        for ((i, o), first) in ours.into_iter().enumerate().zip(again) {
            let mut row = row.clone();
            let seats = [i, tiers, tiers + 1, tiers + 2, tiers + 3];
            let taken = |seat: usize| turns[seat].iter().flatten();
            row.times = seats.map(|seat| median(taken(seat).map(|t| t.wall)));
            row.least = seats.map(|seat| taken(seat).map(|t| t.wall).min_by(f64::total_cmp));
            row.cpu = seats.map(|seat| median(taken(seat).map(|t| t.cpu)));
            row.ratios = [0, 1, 2, 3].map(|peer| ratio(&turns[i], &turns[tiers + peer]));
            let in_exact = || taken(tiers + 4);
            row.exact = [
                median(in_exact().map(|t| t.wall)),
                in_exact().map(|t| t.wall).min_by(f64::total_cmp),
                median(in_exact().map(|t| t.cpu)),
                ratio(&turns[i], &turns[tiers + 4]),
            ];
            row.scratch = [o.call.as_ref().and_then(Call::scratch_bytes).map(|b| b as f64), scratch];
            if let Some(ns) = row.times[0] {
                self.seen.insert((family.name, dtype, o.tier.name()), ((family.work)(size), ns));
            }
            rows.extend(finish(row, vec![Ours { first, ..o }], notes.clone()));
        }
        Ok(rows)
    }

    /// Builds ours and makes the first call, unless it is foreseen to take too long.
    fn prepare_ours(&mut self, family: &Family, size: &[usize], dtype: DType, tier: Tier) -> Ours {
        let mut ours = Ours { tier, call: None, first: None, results: None, note: String::new() };
        if family.measure == Measure::CallsInto && call_into(tier).is_none() {
            ours.note = "not yet: no calls into given buffers".to_owned();
            return ours;
        }
        if let Some(ns) = self.foreseen(family, size, dtype, tier).filter(|ns| *ns > self.effort.cap.as_nanos() as f64)
        {
            ours.note = format!("ours left out: about {} a call", time(ns));
            return ours;
        }
        let (call, first) = fresh(family, size, dtype, tier);
        let results: Result<Vec<Described>> = call.outputs().iter().map(Described::of_array).collect();
        match results {
            Ok(results) => {
                ours.results = Some(results);
                ours.first = Some(first);
                ours.call = Some(call);
            }
            Err(e) => {
                let text = e.to_string();
                ours.note = format!("ours failed: {}", text.lines().next().unwrap_or_default());
                self.disagreements.push(format!("{} {}: {text}", family.name, size_text(size)));
            }
        }
        if family.measure == Measure::FirstResult {
            self.seen.insert((family.name, dtype, tier.name()), ((family.work)(size), first));
        }
        ours
    }

    /// Nanoseconds that a call will take, from the last size or from the smallest of the smoke test.
    fn foreseen(&mut self, family: &Family, size: &[usize], dtype: DType, tier: Tier) -> Option<f64> {
        let key = (family.name, dtype, tier.name());
        let (work, ns) = match self.seen.get(&key) {
            Some(seen) => *seen,
            None => {
                let small = family.quick.first().filter(|small| **small != size)?;
                let (call, _) = fresh(family, small, dtype, tier);
                let seen = ((family.work)(small), timed(1, || call.run()).wall);
                self.seen.insert(key, seen);
                seen
            }
        };
        Some(ns * (family.work)(size) / work)
    }

    /// Medians of more first results, taken in turns, where these are short enough to be noisy.
    fn first_again(
        &mut self,
        family: &Family,
        size: &[usize],
        dtype: DType,
        ours: &[Ours],
        jax: &mut Option<f64>,
    ) -> Vec<Option<f64>> {
        let inputs = (family.inputs)(size);
        let mut all: Vec<Vec<f64>> = ours.iter().map(|o| o.first.into_iter().collect()).collect();
        let mut theirs: Vec<f64> = jax.iter().copied().collect();
        let short = |v: &[f64]| v.iter().all(|ns| *ns < 1e9);
        let small = inputs.iter().map(|i| i.len()).sum::<usize>() <= LARGE;
        if !self.effort.quick && small {
            for _ in 0..2 {
                for (o, times) in ours.iter().zip(&mut all).filter(|(_, t)| !t.is_empty() && short(t)) {
                    times.push(fresh(family, size, dtype, o.tier).1);
                }
                if !theirs.is_empty() && short(&theirs) {
                    theirs.extend(self.jax.prepare(family.peer(), size, dtype, &inputs, PATIENCE).ok());
                }
            }
        }
        *jax = median(theirs);
        all.into_iter().map(median).collect()
    }

    /// What the Python peers are.
    pub fn versions(&mut self) -> [String; 2] {
        [self.jax.version(), self.numpy.version()]
    }
}

/// One of ours who takes turns: results of a device are waited for.
fn player(tier: Tier, call: &Call, measure: Measure) -> Player<'_> {
    if tier == Tier::Xla { Player::Device(call, measure == Measure::Enqueued) } else { Player::Ours(call) }
}

/// A function that nobody has compiled yet, and the nanoseconds until its first result.
fn fresh(family: &Family, size: &[usize], dtype: DType, tier: Tier) -> (Call, f64) {
    let arrays = crate::tier::place(tier, family.arrays(size, dtype));
    clear_executables();
    let started = Instant::now();
    let call = (family.build)(tier, size, arrays);
    if tier == Tier::Xla {
        call.run_to_end()
    } else {
        call.run()
    }
    let first = started.elapsed().as_nanos() as f64;
    (call, first)
}

/// A row for each of ours, with all notes.
fn finish(row: Row, ours: Vec<Ours>, notes: Vec<String>) -> Vec<Row> {
    ours.into_iter()
        .map(|o| {
            let mut row = row.clone();
            row.tier = o.tier.name().to_owned();
            row.first[0] = o.first;
            row.note =
                std::iter::once(o.note).chain(notes.clone()).filter(|n| !n.is_empty()).collect::<Vec<_>>().join("; ");
            row
        })
        .collect()
}

fn excuse(name: &str, silence: &Silence) -> String {
    match silence {
        Silence::Missing => format!("{name} does not have it"),
        Silence::Slow(limit) => format!("{name}: more than {} s", limit.as_secs()),
        Silence::Failed(text) => format!("{name} failed: {text}"),
    }
}

/// Rounds in which each player has a turn: for each of `seats`, what a call takes in every round.
fn take_turns(
    players: &mut [(usize, Player<'_>)],
    effort: Effort,
    seats: usize,
    notes: &mut Vec<String>,
) -> Vec<Vec<Option<Taken>>> {
    // How many calls make a turn long enough. The first call may still find caches cold, so it is asked twice.
    let mut reps = Vec::new();
    let mut round_ns = 0.0;
    for (_, player) in players.iter_mut() {
        let mut n = 1u64;
        for _ in 0..4 {
            let Ok(taken) = player.run(n) else { break };
            let wanted = (effort.turn_ns() / taken.wall.max(1.0)).ceil().clamp(1.0, 1e7) as u64;
            let enough = wanted <= n + n / 4;
            n = wanted;
            if enough {
                break;
            }
        }
        round_ns += player.run(n).map_or(0.0, |taken| taken.wall * n as f64);
        reps.push(n);
    }
    let rounds = if round_ns > 1e10 {
        1
    } else if round_ns > 1e9 {
        3
    } else {
        effort.rounds()
    };
    let mut turns = vec![Vec::new(); seats];
    let mut before = Duration::ZERO;
    for round in 0..rounds {
        for ((seat, player), n) in players.iter_mut().zip(&reps) {
            // Who worked long has much to give back to the system, and does so on the core that the next one wants.
            std::thread::sleep(effort.pause.max(before / AFTERMATH).min(LONGEST_PAUSE));
            let started = Instant::now();
            let turn = player.run(*n);
            before = started.elapsed();
            if let (Err(silence), 0) = (&turn, round) {
                notes.push(excuse("a peer", silence));
            }
            turns[*seat].push(turn.ok());
        }
    }
    turns
}

pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values = Vec::from_iter(values);
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The median of the ratios of each round.
fn ratio(ours: &[Option<Taken>], theirs: &[Option<Taken>]) -> Option<f64> {
    median(ours.iter().zip(theirs).filter_map(|(a, b)| Some((*a)?.wall / (*b)?.wall)))
}
