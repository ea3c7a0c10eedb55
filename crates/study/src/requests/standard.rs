//! What the results of a comparison are compared with: the way without a
//! gateway, and what weights promise each class.
//!
//! A way applies a weight either to a class or to each of its active users;
//! some ways have no weights.

use tidegate_core::Span;
use tidegate_sim::requests::{Setup, Way, Weights};
use tidegate_sim::scenario::file::gateway::Comparison;

/// What results are compared with.
#[derive(Clone, Debug)]
pub struct Standard {
    /// The place of the first way without a gateway.
    pub no_gateway: Option<usize>,
    /// Whose weights each way applies.
    pub weights: Vec<Weights>,
    /// Each class's share when weights are those of classes; nothing for a part of another,
    /// which shares with it.
    pub by_class: Vec<f64>,
    /// Each class's share when weights are those of users, for the average number of users present.
    pub by_user: Vec<f64>,
}

impl Standard {
    /// For the ways of this comparison.
    #[must_use]
    pub fn of(comparison: &Comparison) -> Standard {
        let Setup { classes, .. } = &comparison.setup;
        let users = |number: usize| {
            let there = classes[number].presence.as_ref().map_or(1.0, |presence| {
                let [present, absent] = [presence.present, presence.absent].map(Span::as_seconds);
                present / (present + absent)
            });
            f64::from(classes[number].clients) * there
        };
        let shares = |users: &dyn Fn(usize) -> f64| {
            let part = |number: usize| f64::from(classes[number].weight.get()) * users(number);
            let all: f64 = (0..classes.len()).map(part).sum();
            (0..classes.len()).map(|number| part(number) / all).collect()
        };
        Standard {
            no_gateway: comparison.ways.iter().position(Way::is_direct),
            weights: comparison.ways.iter().map(Way::weights).collect(),
            by_class: shares(&|number| f64::from(u8::from(classes[number].part_of.is_none()))),
            by_user: shares(&users),
        }
    }

    /// What weights promise each class under the way at `place`; `None` where it has none.
    #[must_use]
    pub fn due(&self, place: usize) -> Option<&[f64]> {
        match self.weights[place] {
            Weights::Users => Some(&self.by_user),
            Weights::Classes => Some(&self.by_class),
            Weights::Nobody => None,
        }
    }

    /// Whether every class receives the same by either kind of weight.
    #[must_use]
    pub fn is_one(&self) -> bool {
        let both = self.by_class.iter().zip(&self.by_user);
        both.into_iter().all(|(one, other)| (one - other).abs() < 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sim::scenario::file::{Folder, gateway};

    use super::*;

    #[test]
    fn weights_are_those_of_classes_or_of_the_users_who_are_there() {
        let text = r#"
            title = "Two"
            ways = [
                "msf",
                { name = "msf", shares = "class", label = "of classes" },
                { name = "htb", label = "direct" },
                { name = "direct", label = "none" },
            ]
            [[class]]
            name = "staff"
            weight = 3
            clients = 2
            [[class]]
            name = "guests"
            clients = 4
            present = "1 min"
            absent = "3 min"
            [[class]]
            name = "helpdesk"
            part_of = "staff"
            clients = 1
        "#;
        let comparison = gateway::parse("two", text, &Folder(".".into())).expect("a right file");
        let standard = Standard::of(&comparison);
        assert_eq!(standard.no_gateway, Some(3));
        let [user, class] = [&[0.6, 0.1, 0.3][..], &[0.75, 0.25, 0.0]].map(Some);
        let due: Vec<_> = (0..4).map(|place| standard.due(place)).collect();
        assert_eq!(due, [user, class, class, None]);
        assert!(!standard.is_one());
    }
}
