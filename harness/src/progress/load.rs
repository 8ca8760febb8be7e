//! How the load goes, in one line: what matters least at its rank, so that a narrow terminal still shows
//! whether anything succeeds and who leads.

use std::time::Duration;

use runs::numbers::count;

use super::line::Line;

/// What is told of the load while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Operations that succeeded.
    pub ok: u64,
    /// Compare-and-sets that found another value.
    pub refused: u64,
    /// Operations that failed definitely.
    pub failed: u64,
    /// Operations that no member was sent.
    pub unsent: u64,
    /// Operations of unknown fate.
    pub unknown: u64,
    /// The member that leads, and its epoch.
    pub leader: Option<(u64, u32)>,
    /// Whether nobody can tell who leads.
    pub has_no_roles: bool,
    /// What the live check says: what matters of it, and the rest.
    pub live: Option<(String, String)>,
}

impl Load {
    /// The line, so long after the start of a load that lasts so long.
    pub(super) fn line(&self, elapsed: Duration, limit: Duration) -> Line {
        let leader = match self.leader {
            Some((id, epoch)) => Some(format!("n{id} leads epoch {epoch}")),
            None if self.has_no_roles => None,
            None => Some("no leader".to_owned()),
        };
        let line = Line::begin(format!("{:3} s of {} s", elapsed.as_secs(), limit.as_secs()))
            .and(": ", format!("{} ok", count(self.ok)), 1)
            .and(", ", format!("{} refused", count(self.refused)), 5)
            .and(", ", format!("{} failed", count(self.failed)), 4);
        let line = match self.unsent {
            0 => line,
            some => line.and(", ", format!("{} not sent", count(some)), 4),
        };
        let line = line.and(", ", format!("{} unknown", count(self.unknown)), 3);
        let line = match leader {
            Some(leader) => line.and("; ", leader, 2),
            None => line,
        };
        match &self.live {
            Some((first, rest)) => line.and("; ", first, 6).and(", ", rest, 7),
            None => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_the_usual_widths_and_says_what_matters_most() {
        let load = Load {
            ok: 26_759,
            refused: 3_122,
            failed: 82,
            unsent: 0,
            unknown: 58,
            leader: Some((3, 14)),
            has_no_roles: false,
            live: Some(("live: 2,664 judged".to_owned(), "3 open".to_owned())),
        };
        let line = load.line(Duration::from_secs(12), Duration::from_secs(30));
        let shown = [60, 80, 120, 160].map(|columns| line.fitted(columns - super::super::beside(columns)));
        assert_eq!(
            shown,
            [
                " 12 s of 30 s: 26,759 ok; n3 leads epoch 14",
                " 12 s of 30 s: 26,759 ok, 58 unknown; n3 leads epoch 14",
                " 12 s of 30 s: 26,759 ok, 3,122 refused, 82 failed, 58 unknown; n3 leads epoch 14",
                " 12 s of 30 s: 26,759 ok, 3,122 refused, 82 failed, 58 unknown; n3 leads epoch 14; live: \
                 2,664 judged, 3 open",
            ]
        );
    }

    #[test]
    fn a_load_that_nobody_leads_says_so_where_that_can_be_told() {
        let line = Load::default().line(Duration::ZERO, Duration::from_secs(9)).whole();
        assert_eq!(line, "  0 s of 9 s: 0 ok, 0 refused, 0 failed, 0 unknown; no leader");
        let load = Load { has_no_roles: true, ..Load::default() };
        let line = load.line(Duration::ZERO, Duration::from_secs(9)).whole();
        assert_eq!(line, "  0 s of 9 s: 0 ok, 0 refused, 0 failed, 0 unknown");
    }
}
