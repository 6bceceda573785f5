//! Special functions.

use gradus::prelude::*;
use gradus::special;

use super::compare::{Entry, table};

pub fn entries() -> Vec<Entry> {
    table! {
        "special.erf" = |x| x[0].erf();
        "special.erfc" = |x| x[0].erfc();
        "special.expit" = |x| x[0].logistic();
        "special.erfinv" = |x| x[0].erf_inv();
        "special.gammaln" = |x| x[0].lgamma();
        "special.loggamma" = |x| x[0].lgamma();
        "special.digamma" = |x| x[0].digamma();
        "special.gamma" = |x| special::gamma(&x[0]);
        "special.gamma:negative" = |x| special::gamma(&x[0]);
        "special.gammasgn" = |x| special::gammasgn(&x[0]);
        "special.entr" = |x| special::entr(&x[0]);
        "special.factorial" = |x| special::factorial(&x[0]);
        "special.polygamma" = |x| x[0].polygamma(2);
        "special.logsumexp" = |x| x[0].logsumexp();
        "special.softmax" = |x| x[0].softmax(0);
        "special.log_softmax" = |x| x[0].log_softmax(0);
        "special.beta" = |x| special::beta(&x[0], &x[1]);
        "special.betaln" = |x| special::betaln(&x[0], &x[1]);
        "special.betaln:large" = |x| special::betaln(&x[0], &x[1]);
        "special.xlogy" = |x| special::xlogy(&x[0], &x[1]);
        "special.xlogy:zero" = |x| special::xlogy(x[0].stop_gradient(), x[1].stop_gradient());
        "special.xlog1py" = |x| special::xlog1py(&x[0], &x[1]);
        "special.rel_entr" = |x| special::rel_entr(&x[0], &x[1]);
        "special.kl_div" = |x| special::kl_div(&x[0], &x[1]);
        "special.logit" = |x| special::logit(&x[0]);
        "special.boxcox" = |x| special::boxcox(&x[0], &x[1]);
        "special.boxcox1p" = |x| special::boxcox1p(&x[0], &x[1]);
        "special.ndtr" = |x| special::ndtr(&x[0]);
        "special.ndtr:tails" = |x| special::ndtr(&x[0]);
        "special.log_ndtr" = |x| special::log_ndtr(&x[0]);
        "special.ndtri" = |x| special::ndtri(&x[0]);
        "special.ndtri:tails" = |x| special::ndtri(&x[0]);
        "special.comb" = |x| special::comb(&x[0], &x[1]);
        "special.poch" = |x| special::poch(&x[0], &x[1]);
        "special.multigammaln" = |x| special::multigammaln(&x[0], 3);
        "special.bernoulli" = |x| special::bernoulli(12) + x[0].sum().cast(DType::F64);
        "special.zeta" = |x| special::zeta(Array::from([1.5, 2.0, 3.3, 4.0, 7.0, 20.0_f64]), &x[0]);
        "special.gammainc" = |x| special::gammainc(Array::from([0.5, 1.0, 2.5, 4.0, 30.0, 3.0_f64]), &x[0]);
        "special.gammainc:both" = |x| special::gammainc(&x[0], &x[1]);
        "special.gammaincc" = |x| special::gammaincc(Array::from([0.5, 1.0, 2.5, 4.0, 30.0, 3.0_f64]), &x[0]);
        "special.gammaincc:both" = |x| special::gammaincc(&x[0], &x[1]);
        "special.betainc" = |x| special::betainc(Array::from([0.5, 1.0, 2.5, 4.0, 20.0, 3.0_f64]), Array::from([2.0, 0.7, 3.5, 9.0, 25.0, 1.0_f64]), &x[0]);
        "special.i0" = |x| special::i0(&x[0]);
        "special.i0e" = |x| special::i0e(&x[0]);
        "special.i1" = |x| special::i1(&x[0]);
        "special.i1e" = |x| special::i1e(&x[0]);
        "special.exp1" = |x| special::exp1(&x[0]);
        "special.expn" = |x| special::expn(3, &x[0]);
        "special.expi" = |x| special::expi(&x[0]);
        "special.spence" = |x| special::spence(&x[0]);
        "special.sici" = |x| special::sici(&x[0]);
        "special.erfcx" = |x| special::erfcx(&x[0]);
        "special.dawsn" = |x| special::dawsn(&x[0]);
        "special.fresnel" = |x| special::fresnel(&x[0]);
        "special.owens_t" = |x| special::owens_t(&x[0], &x[1]);
    }
}
