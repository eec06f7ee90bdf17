//! Which voice of a lane is the owner, when several sound like them.
//!
//! Compares the voices of one lane only. A voice that is confidently somebody else does not contend. The nearest voice
//! keeps the owner when the next one of another group is a margin farther; everyone else who claimed the owner is
//! contended and becomes nobody. A voice that failed on its own is never promoted, but can block.

use crate::embedding::Centroid;
use crate::ids::Scope;
use crate::policy::{Decision, Policy, Role, Verdict};

/// One voice with a decision of its own.
#[derive(Debug, Clone, Copy)]
pub struct Contender<'a> {
    /// Its provider stream; empty when it has none.
    pub scope: &'a Scope,
    /// Its evidence.
    pub centroid: &'a Centroid,
    /// Its distance to the owner, when that is known.
    pub owner_distance: Option<f64>,
    /// What its own evidence says.
    pub decision: &'a Decision,
}

/// Whether an automatic voice may be the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerClaim {
    /// Any voice may.
    Open,
    /// A person said who the owner is.
    Reserved,
}

/// What arbitration leaves of a voice's own decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its own decision holds.
    Own,
    /// It claimed the owner and does not keep it.
    Contended,
}

/// Judges all voices of a lane together; the answer has one entry a contender, in the same order.
#[must_use]
pub fn arbitrate(contenders: &[Contender<'_>], policy: &Policy, claim: OwnerClaim) -> Vec<Standing> {
    let mut ranked: Vec<(usize, f64)> = contenders.iter().enumerate().filter_map(owner_distance).collect();
    ranked.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let keeps = winners(&ranked, contenders, policy, claim);
    let standing = contenders.iter().enumerate().map(|(index, contender)| {
        let claims = contender.decision.is_accepted_as(Role::Owner);
        if claims && !keeps.contains(&index) { Standing::Contended } else { Standing::Own }
    });
    standing.collect()
}

/// Only voices that are nobody or the owner contend, and only at a finite distance.
fn owner_distance((index, contender): (usize, &Contender<'_>)) -> Option<(usize, f64)> {
    let decision = contender.decision;
    let contends = decision.verdict == Verdict::Nobody || decision.is_accepted_as(Role::Owner);
    let distance = contender.owner_distance.filter(|distance| distance.is_finite())?;
    contends.then_some((index, distance))
}

/// The members of the group that keeps the owner; empty when the first two groups are too close, or on a reservation.
fn winners(ranked: &[(usize, f64)], contenders: &[Contender<'_>], policy: &Policy, claim: OwnerClaim) -> Vec<usize> {
    let Some((_, nearest)) = ranked.first().copied() else { return Vec::new() };
    if claim == OwnerClaim::Reserved {
        return Vec::new();
    }
    let group = nearest_group(ranked, contenders, policy);
    let next = ranked.iter().find(|(index, _)| !group.contains(index));
    let is_clear = next.is_none_or(|(_, distance)| distance - nearest >= policy.margin);
    if is_clear { group } else { Vec::new() }
}

/// The voices that are one with the nearest: in rank order, each that is one voice with every member so far. Other groups
/// need no names: whoever is not in this one stands against it.
fn nearest_group(ranked: &[(usize, f64)], contenders: &[Contender<'_>], policy: &Policy) -> Vec<usize> {
    let mut group: Vec<usize> = Vec::new();
    for (index, _) in ranked {
        let joins = group.iter().all(|member| match (contenders.get(*member), contenders.get(*index)) {
            (Some(member), Some(newcomer)) => is_one_voice(member, newcomer, policy),
            _ => false,
        });
        if joins {
            group.push(*index);
        }
    }
    group
}

fn is_one_voice(a: &Contender<'_>, b: &Contender<'_>, policy: &Policy) -> bool {
    let are_scoped = !a.scope.as_str().is_empty() && !b.scope.as_str().is_empty();
    are_scoped
        && a.scope != b.scope
        && a.centroid.distance_to_centroid(b.centroid).is_some_and(|distance| distance < policy.grouping)
}
