//! The numbers of two Runge-Kutta methods of seven stages, the last of which is the first of the next step.

/// A method of order 5 with an estimate of its error of order 4, and the solution in the middle of a step to order 4.
pub(super) struct Tableau {
    /// Where in a step each stage looks.
    pub(super) places: [f64; 7],
    /// The weights of earlier stages in each; the last row is the step.
    pub(super) stages: [[f64; 6]; 7],
    /// Weights of the estimated error.
    pub(super) error: [f64; 7],
    /// Weights of the middle of the step.
    pub(super) middle: [f64; 7],
}

/// Dormand and Prince (1980); the middle by Shampine (1986).
pub(super) const DORMAND_PRINCE: Tableau = Tableau {
    places: [0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0],
    stages: [
        [0.0; 6],
        [1.0 / 5.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [3.0 / 40.0, 9.0 / 40.0, 0.0, 0.0, 0.0, 0.0],
        [44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0, 0.0, 0.0, 0.0],
        [19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0, 0.0, 0.0],
        [9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0, 0.0],
        [35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
    ],
    error: [
        35.0 / 384.0 - 5179.0 / 57600.0,
        0.0,
        500.0 / 1113.0 - 7571.0 / 16695.0,
        125.0 / 192.0 - 393.0 / 640.0,
        -2187.0 / 6784.0 + 92097.0 / 339200.0,
        11.0 / 84.0 - 187.0 / 2100.0,
        -1.0 / 40.0,
    ],
    middle: [
        6025192743.0 / 30085553152.0 / 2.0,
        0.0,
        51252292925.0 / 65400821598.0 / 2.0,
        -2691868925.0 / 45128329728.0 / 2.0,
        187940372067.0 / 1594534317056.0 / 2.0,
        -1776094331.0 / 19743644256.0 / 2.0,
        11237099.0 / 235043384.0 / 2.0,
    ],
};

/// Tsitouras (2011); the middle is that of his interpolant.
pub(super) const TSITOURAS: Tableau = Tableau {
    places: [0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0],
    stages: [
        [0.0; 6],
        [0.161, 0.0, 0.0, 0.0, 0.0, 0.0],
        [-0.008480655492356989, 0.335480655492357, 0.0, 0.0, 0.0, 0.0],
        [2.8971530571054935, -6.359448489975075, 4.3622954328695815, 0.0, 0.0, 0.0],
        [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525, 0.0, 0.0],
        [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383, 0.0],
        [0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774],
    ],
    error: [
        -0.001780011052225777,
        -0.0008164344596567469,
        0.007880878010261995,
        -0.1447110071732629,
        0.5823571654525552,
        -0.45808210592918697,
        0.015151515151515152,
    ],
    middle: [
        0.10741235230096871,
        0.01135625,
        0.39560903056045305,
        -0.34475214352593553,
        1.3161853649581645,
        -1.0170608542936508,
        0.03125,
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    type Seven = [f64; 7];

    fn dot(a: &Seven, b: &Seven) -> f64 {
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    }

    fn each(a: &Seven, b: &Seven) -> Seven {
        std::array::from_fn(|i| a[i] * b[i])
    }

    /// How far weights are from those of a method of order 4 over a share of a step, by the eight conditions of Butcher.
    fn off(t: &Tableau, weights: &Seven, share: f64) -> f64 {
        let by = |v: &Seven| -> Seven { t.stages.map(|row| row.iter().zip(v).map(|(a, x)| a * x).sum()) };
        let c = &t.places;
        let (ac, cc) = (by(c), each(c, c));
        let found = [
            (dot(weights, &[1.0; 7]), share),
            (dot(weights, c), share.powi(2) / 2.0),
            (dot(weights, &cc), share.powi(3) / 3.0),
            (dot(weights, &ac), share.powi(3) / 6.0),
            (dot(weights, &each(&cc, c)), share.powi(4) / 4.0),
            (dot(weights, &each(c, &ac)), share.powi(4) / 8.0),
            (dot(weights, &by(&cc)), share.powi(4) / 12.0),
            (dot(weights, &by(&ac)), share.powi(4) / 24.0),
        ];
        found.iter().map(|(have, want)| (have - want).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn the_numbers_fulfil_the_conditions_of_their_order() {
        for t in [&DORMAND_PRINCE, &TSITOURAS] {
            for (row, place) in t.stages.iter().zip(t.places) {
                assert!((row.iter().sum::<f64>() - place).abs() < 1e-14);
            }
            let [a, b, c, d, e, f] = t.stages[6];
            let step = [a, b, c, d, e, f, 0.0];
            assert!(off(t, &step, 1.0) < 1e-14);
            assert!((dot(&step, &t.places.map(|c| c.powi(4))) - 0.2).abs() < 1e-14, "order 5");
            let lower = std::array::from_fn(|i| step[i] - t.error[i]);
            assert!(off(t, &lower, 1.0) < 1e-14);
            assert!(off(t, &t.middle, 0.5) < 1e-14);
        }
    }
}
