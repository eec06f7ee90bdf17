//! How evenly queries are shared: Jain's index over what each voice got of its fair share.
//!
//! A voice's *demand* is the number of queries that it makes when no other hinders it: there is a worker for everybody and
//! always a token, and its attempts are what they are. Its *fair share* of what was spent is the max-min one: everybody gets the same, nobody more than they demand,
//! and what is left over goes to those who want more. On what was got alone the index would only tell how unequal the demand
//! is.

use std::collections::BTreeMap;

use matcher_core::Speaker;

/// Jain's index of what each voice got, as a part of its fair share: 1 when all have the same part, 1/n when one has
/// everything. Whoever demands nothing does not count.
pub(super) fn jain(served: &BTreeMap<Speaker, u32>, demand: &BTreeMap<Speaker, u32>) -> f64 {
    let total: u32 = demand.keys().filter_map(|speaker| served.get(speaker)).sum();
    let shares = fair_shares(demand, total);
    let parts: Vec<f64> = shares
        .iter()
        .filter(|(_, share)| **share > 0.0)
        .map(|(speaker, share)| f64::from(served.get(speaker).copied().unwrap_or(0)) / share)
        .collect();
    index(&parts)
}

fn index(parts: &[f64]) -> f64 {
    let (sum, squares) = parts.iter().fold((0.0, 0.0), |(sum, squares), part| (sum + part, squares + part * part));
    // Nobody got anything: nobody got less than another. Counts are far below 2^52.
    if squares > 0.0 { sum * sum / (parts.len() as f64 * squares) } else { 1.0 }
}

/// The max-min fair shares of `total` queries.
fn fair_shares(demand: &BTreeMap<Speaker, u32>, total: u32) -> BTreeMap<Speaker, f64> {
    let mut by_demand: Vec<(u32, Speaker)> = demand.iter().map(|(speaker, wanted)| (*wanted, *speaker)).collect();
    by_demand.sort_unstable();
    let (mut left, mut people) = (f64::from(total), by_demand.len());
    let mut shares = BTreeMap::new();
    for (wanted, speaker) in by_demand {
        let share = f64::from(wanted).min(left / people as f64);
        left -= share;
        people -= 1;
        shares.insert(speaker, share);
    }
    shares
}

#[cfg(test)]
mod tests {
    //! Goal: the index tells what is uneven, and nothing else. Method: shares that a reader can count.

    use super::*;

    fn of(counts: &[u32]) -> BTreeMap<Speaker, u32> {
        (0..).map(Speaker).zip(counts.iter().copied()).collect()
    }

    #[test]
    fn nobody_has_more_than_they_demand_and_the_rest_goes_to_those_who_want_more() {
        let shares = fair_shares(&of(&[1, 12, 4, 12]), 20);
        assert_eq!(shares.values().copied().collect::<Vec<_>>(), [1.0, 7.5, 4.0, 7.5]);
        assert!((fair_shares(&of(&[3, 3]), 20).values().sum::<f64>() - 6.0).abs() < f64::EPSILON);
    }

    #[test]
    fn unequal_demand_is_no_unfairness_and_one_who_takes_everything_is() {
        assert!((jain(&of(&[1, 7, 4, 8]), &of(&[1, 12, 4, 12])) - 1.0).abs() < 0.01);
        assert!((jain(&of(&[0, 12, 0, 0]), &of(&[12, 12, 12, 12])) - 0.25).abs() < 1e-9);
        assert!((jain(&of(&[]), &of(&[4, 4])) - 1.0).abs() < f64::EPSILON, "nobody got less than another");
    }
}
