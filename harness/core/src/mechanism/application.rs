//! Stopping, ending or cutting off an application, which is no member.

use runs::consequence::Consequence;
use runs::faults::{FaultDetail, Holder as Hit};

use super::{Act, Mechanism, Part, Resource, Use, application_clock};
use crate::fault::application::{Harm, Holder};

/// The mechanism.
pub static APPLICATION: Mechanism = Mechanism {
    name: "application",
    about: "an application that holds is stopped, killed or cut off from all members; process, docker, with \
            --workload lock, election, standby, queue or barrier",
    occupies: &[(Part::Application, Use::Alone)],
    parameters: &[],
    may_lose_unsynced: false,
    virtually: Err("applications are processes"),
};

/// Something is done to an application, and to no member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Harmed {
    /// To whom, as long as it holds what it held when it was aimed at.
    pub holder: Holder,
    /// What.
    pub harm: Harm,
}

impl Act for Harmed {
    fn mechanism(&self) -> &'static Mechanism {
        match self.harm {
            Harm::Clock { .. } => &application_clock::APPLICATION_CLOCK,
            Harm::Pause | Harm::Kill | Harm::Cut => &APPLICATION,
        }
    }

    fn occupies(&self) -> Vec<(Resource, Use)> {
        vec![(Resource::Application(self.holder.application), Use::Alone)]
    }

    fn consequences(&self) -> Vec<Consequence> {
        let time = matches!(self.harm, Harm::Clock { .. }).then_some(Consequence::ShiftsTime);
        std::iter::once(Consequence::HitsApplications).chain(time).collect()
    }

    fn how_it_ended(&self) -> Option<String> {
        (self.harm == Harm::Kill).then(|| "another application took its place".to_owned())
    }

    fn describe(&self, detail: &mut FaultDetail) {
        let Holder { application, key, token, .. } = self.holder;
        detail.holder = Some(Hit { application, key, token });
        if let Harm::Clock { offset_ns } = self.harm {
            detail.clock_offset_ns = Some(offset_ns);
        }
    }
}
