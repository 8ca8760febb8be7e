//! Whom a fault of the user's own hits.

use runs::member::MemberId;

use super::own::{Own, Whom};
use super::scene::{Draw, Resolved};
use crate::mechanism::own::Owned;

/// Those at whom it is aimed, as far as their processes are there. None when nobody fits.
pub(super) fn aim(own: Own, draw: &mut Draw<'_>) -> Option<Resolved> {
    let targets = match own.whom() {
        Whom::One => vec![draw.any],
        Whom::Leader => vec![draw.leader?],
        Whom::Followers => followers(draw)?,
        Whom::All => draw.there.clone(),
    };
    let sentence = format!("{} {}", own.name(), draw.scene.names(&targets));
    let owned = Owned { own, members: targets.clone() };
    // It divides nobody from anybody, as far as is known.
    (!targets.is_empty()).then(|| draw.scene.resolved(targets, owned, Vec::new(), sentence))
}

/// Where nobody is known to lead, whoever is hit might.
fn followers(draw: &Draw<'_>) -> Option<Vec<MemberId>> {
    let leader = draw.scene.leader?;
    Some(draw.there.iter().copied().filter(|member| *member != leader).collect())
}
