//! The tree itself: what one operation does to it, and whether an answer fits.
//!
//! Written from ZooKeeper's rules and not from any server's code, so that a server's mistake is not repeated
//! here:
//!
//! - A create is refused for want of the parent, then because the znode is there, then because the parent is
//!   ephemeral. A delete: for want of the znode, for its version, for its children.
//! - The counter that numbers sequential znodes counts the creates below the parent, of any kind, and never
//!   goes back. A Stat shows as `cversion` how often the children changed: each create, and each child that
//!   is gone.
//! - The end of a session removes its ephemeral znodes in one step. Whoever has ended may change nothing
//!   more.
//!
//! A change is judged before it is made: an answer that does not fit leaves the state as it was.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::op::{ANY, Answer, Ask, Op, Path, Refusal, Shown, Stat, Step};
use super::shared::Map;
use crate::history::Datum;

/// The zxid of a change that nobody told.
const UNTOLD: u64 = 0;

/// One znode.
#[derive(Clone, Debug, PartialEq)]
struct Znode {
    data: Datum,
    version: i32,
    /// Creates below it so far: the counter of sequential names.
    creates: i32,
    children: i32,
    /// The session that it ends with, or 0.
    owner: u64,
    /// Zxids of its create, of the last change of its data and of its children; [`UNTOLD`] in every state of
    /// a search.
    stamps: [u64; 3],
    /// Hash of path and contents, without the zxids.
    mark: u64,
}

impl Znode {
    fn new(data: Datum, owner: u64, zxid: u64) -> Self {
        Self { data, version: 0, creates: 0, children: 0, owner, stamps: [zxid; 3], mark: 0 }
    }

    fn marked(mut self, path: &Path) -> Self {
        let mut hasher = DefaultHasher::new();
        (path, &self.data, self.version, self.creates, self.children, self.owner).hash(&mut hasher);
        self.mark = hasher.finish();
        self
    }

    /// The first field that a Stat shows otherwise.
    fn misfit(&self, stat: &Stat) -> Option<&'static str> {
        let told =
            |claim: Option<u64>, stamp: u64| stamp == UNTOLD || claim.is_none_or(|claim| claim == stamp);
        let [czxid, mzxid, pzxid] = self.stamps;
        // Bytes are only known of what is text: a number may be stored in any form.
        let length = match &self.data {
            Datum::Nil => Some(0),
            Datum::Text(text) => i64::try_from(text.len()).ok(),
            _ => None,
        };
        let cversion = self.creates.wrapping_mul(2).wrapping_sub(self.children);
        let fields = [
            ("version", stat.version.is_none_or(|version| version == self.version)),
            ("numChildren", stat.num_children.is_none_or(|count| count == i64::from(self.children))),
            ("cversion", stat.cversion.is_none_or(|claim| claim == cversion)),
            ("aversion", stat.aversion.is_none_or(|claim| claim == 0)),
            ("ephemeralOwner", stat.ephemeral_owner.is_none_or(|owner| owner == self.owner)),
            ("dataLength", length.is_none_or(|is| stat.data_length.is_none_or(|claim| claim == is))),
            ("order of zxids", self.is_coherent(stat)),
            ("czxid", told(stat.czxid, czxid)),
            ("mzxid", told(stat.mzxid, mzxid)),
            ("pzxid", told(stat.pzxid, pzxid)),
        ];
        fields.into_iter().find(|(_, fits)| !fits).map(|(name, _)| name)
    }
}

impl Znode {
    /// What the zxids of every Stat obey, whatever they are: nothing precedes the create, and what never
    /// changed since has its zxid. (The reverse is not so: a multi makes and changes a znode under one zxid.)
    fn is_coherent(&self, stat: &Stat) -> bool {
        let Some(czxid) = stat.czxid else { return true };
        let after = |zxid: Option<u64>, changes: i32| {
            zxid.is_none_or(|zxid| zxid >= czxid && (zxid == czxid || changes != 0))
        };
        after(stat.mzxid, self.version) && after(stat.pzxid, self.creates)
    }
}

/// Why an answer can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It shows this otherwise.
    Shows(&'static str),
    /// It had to be refused.
    Refused(Refusal),
    /// It could not be refused.
    Accepted,
    /// Its session had ended.
    Ended,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shows(what) => write!(f, "the tree had another {what}"),
            Self::Refused(why) => write!(f, "it had to be refused: {}", why.as_str()),
            Self::Accepted => f.write_str("nothing stood against it"),
            Self::Ended => f.write_str("its session had ended"),
        }
    }
}

/// What a step comes to: the znode it is about as it stands afterwards, or for a delete as it stood.
struct Effect {
    made: Option<Path>,
    znode: Znode,
}

/// The tree, and the sessions that ended.
#[derive(Clone, Debug)]
pub struct State {
    nodes: Map<Path, Znode>,
    owned: Map<(u64, Path), ()>,
    ended: Map<u64, ()>,
    /// Sum of the hashes of all that is held.
    sum: u64,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.sum == other.sum && self.nodes == other.nodes && self.ended == other.ended
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.sum);
    }
}

/// Finds a path given as text.
fn at(text: &str) -> impl Fn(&Path) -> Ordering + '_ {
    let wanted = match text.rfind('/') {
        Some(0) if text.len() == 1 => ("", ""),
        Some(0) => ("/", &text[1..]),
        Some(slash) => (&text[..slash], &text[slash + 1..]),
        None => ("", text),
    };
    move |path| (path.parent(), path.name()).cmp(&wanted)
}

impl Default for State {
    /// A new ensemble: the root, and in it the system's own `zookeeper`, which nobody created.
    fn default() -> Self {
        let mut state = Self { nodes: Map::default(), owned: Map::default(), ended: Map::default(), sum: 0 };
        for (path, children) in [("/", 1), ("/zookeeper", 0)] {
            if let Some(path) = Path::new(path.into()) {
                let znode = Znode { children, ..Znode::new(Datum::Nil, 0, UNTOLD) };
                state.insert(path, znode);
            }
        }
        state
    }
}

impl State {
    /// Does an operation, if its answer fits. With the zxid of that change the zxids that Stats show are
    /// judged too.
    ///
    /// # Errors
    /// [`Misfit`] says why the answer can't be; the state is as before.
    pub fn perform(&mut self, op: &Op, zxid: Option<u64>) -> Result<(), Misfit> {
        let zxid = zxid.unwrap_or(UNTOLD);
        if op.session.is_some_and(|session| op.ask.is_update() && self.has_ended(session)) {
            // To end twice is to have ended.
            return if op.ask == Ask::End || op.answer.is_none() { Ok(()) } else { Err(Misfit::Ended) };
        }
        match &op.ask {
            Ask::End => {
                self.end(op.session.unwrap_or(0), zxid);
                Ok(())
            }
            Ask::One(step) => self.one(step, op, zxid),
            Ask::Multi(steps) => self.multi(steps, op, zxid),
        }
    }

    fn one(&mut self, step: &Step, op: &Op, zxid: u64) -> Result<(), Misfit> {
        match (self.effect(step, op.session, zxid), &op.answer) {
            (Ok(_), Some(Answer::Refused { .. })) => Err(Misfit::Accepted),
            (Ok(effect), Some(Answer::Done(shown))) => {
                if let Some(shown) = shown.first() {
                    self.fits(step, &effect, shown)?;
                }
                self.commit(step, effect, zxid);
                Ok(())
            }
            (Ok(effect), None) => {
                self.commit(step, effect, zxid);
                Ok(())
            }
            (Err(why), Some(Answer::Refused { why: told, .. })) if why == *told => Ok(()),
            (Err(_), None) => Ok(()),
            (Err(why), Some(_)) => Err(Misfit::Refused(why)),
        }
    }

    fn multi(&mut self, steps: &[Step], op: &Op, zxid: u64) -> Result<(), Misfit> {
        let mut after = self.clone();
        for (position, step) in steps.iter().enumerate() {
            match after.effect(step, op.session, zxid) {
                Ok(effect) => {
                    if let Some(Answer::Done(shown)) = &op.answer
                        && let Some(shown) = shown.get(position)
                    {
                        after.fits(step, &effect, shown)?;
                    }
                    after.commit(step, effect, zxid);
                }
                Err(why) => {
                    let told = matches!(&op.answer, Some(Answer::Refused { at, why: told })
                        if *told == why && at.is_none_or(|at| at == position));
                    return if told || op.answer.is_none() { Ok(()) } else { Err(Misfit::Refused(why)) };
                }
            }
        }
        if matches!(op.answer, Some(Answer::Refused { .. })) {
            return Err(Misfit::Accepted);
        }
        *self = after;
        Ok(())
    }

    /// What a step would come to.
    fn effect(&self, step: &Step, session: Option<u64>, zxid: u64) -> Result<Effect, Refusal> {
        let found = |path: &Path| self.nodes.find(|other| other.cmp(path)).ok_or(Refusal::NoNode);
        let demand = |asked: i32, is: i32| {
            if asked == ANY || asked == is { Ok(()) } else { Err(Refusal::BadVersion) }
        };
        match step {
            Step::Create { path, data, ephemeral, sequential } => {
                let parent = self.nodes.find(at(path.parent())).ok_or(Refusal::NoNode)?;
                let made = if *sequential { path.numbered(parent.creates) } else { path.clone() };
                if found(&made).is_ok() {
                    return Err(Refusal::NodeExists);
                }
                if parent.owner != 0 {
                    return Err(Refusal::NoChildrenForEphemerals);
                }
                let owner = if *ephemeral { session.unwrap_or(0) } else { 0 };
                Ok(Effect { made: Some(made), znode: Znode::new(data.clone(), owner, zxid) })
            }
            Step::Delete { path, version } => {
                let znode = found(path)?;
                demand(*version, znode.version)?;
                if znode.children > 0 {
                    return Err(Refusal::NotEmpty);
                }
                Ok(Effect { made: None, znode: znode.clone() })
            }
            Step::Set { path, data, version } => {
                let znode = found(path)?;
                demand(*version, znode.version)?;
                let [czxid, _, pzxid] = znode.stamps;
                let version = znode.version.wrapping_add(1);
                let stamps = [czxid, zxid, pzxid];
                Ok(Effect {
                    made: None,
                    znode: Znode { data: data.clone(), version, stamps, ..znode.clone() },
                })
            }
            Step::Check { path, version } => {
                let znode = found(path)?;
                demand(*version, znode.version)?;
                Ok(Effect { made: None, znode: znode.clone() })
            }
            Step::Get(path) | Step::Exists(path) | Step::Children(path) => {
                Ok(Effect { made: None, znode: found(path)?.clone() })
            }
        }
    }

    fn fits(&self, step: &Step, effect: &Effect, shown: &Shown) -> Result<(), Misfit> {
        if let (Some(made), Some(told)) = (&effect.made, &shown.path)
            && made.as_str() != &**told
        {
            return Err(Misfit::Shows("name"));
        }
        if let Some(data) = &shown.data
            && matches!(step, Step::Get(_))
            && *data != effect.znode.data
        {
            return Err(Misfit::Shows("data"));
        }
        if let Some(misfit) = shown.stat.as_ref().and_then(|stat| effect.znode.misfit(stat)) {
            return Err(Misfit::Shows(misfit));
        }
        if let (Step::Children(path), Some(names)) = (step, &shown.children) {
            let mut told = names.iter();
            let mut same = i64::try_from(names.len()) == Ok(i64::from(effect.znode.children));
            if same {
                let band = |other: &Path| other.parent().cmp(path.as_str());
                self.nodes.visit(&band, &mut |path, _| {
                    same &= told.next().is_some_and(|name| **name == *path.name())
                });
            }
            if !same {
                return Err(Misfit::Shows("set of children"));
            }
        }
        Ok(())
    }

    fn commit(&mut self, step: &Step, effect: Effect, zxid: u64) {
        match step {
            Step::Create { .. } => {
                let Some(path) = effect.made else { return };
                self.adjust(path.parent(), |parent| {
                    parent.creates = parent.creates.wrapping_add(1);
                    parent.children += 1;
                    parent.stamps[2] = zxid;
                });
                if effect.znode.owner != 0 {
                    self.owned.insert((effect.znode.owner, path.clone()), ());
                }
                self.insert(path, effect.znode);
            }
            Step::Delete { path, .. } => self.remove(path, zxid),
            Step::Set { path, .. } => self.adjust(path.as_str(), |znode| *znode = effect.znode),
            Step::Check { .. } | Step::Get(_) | Step::Exists(_) | Step::Children(_) => {}
        }
    }

    fn insert(&mut self, path: Path, znode: Znode) {
        let znode = znode.marked(&path);
        self.sum = self.sum.wrapping_add(znode.mark);
        self.nodes.insert(path, znode);
    }

    fn remove(&mut self, path: &Path, zxid: u64) {
        let Some(znode) = self.nodes.remove(|other| other.cmp(path)) else { return };
        self.sum = self.sum.wrapping_sub(znode.mark);
        if znode.owner != 0 {
            self.owned.remove(|(owner, other)| (owner, other).cmp(&(&znode.owner, path)));
        }
        self.adjust(path.parent(), |parent| {
            parent.children -= 1;
            parent.stamps[2] = zxid;
        });
    }

    /// Changes a znode that is there, and keeps the sum true.
    fn adjust(&mut self, path: &str, change: impl FnOnce(&mut Znode)) {
        let Some(znode) = self.nodes.find_mut(at(path)) else { return };
        let before = znode.mark;
        change(znode);
        let mut hasher = DefaultHasher::new();
        (path, &znode.data, znode.version, znode.creates, znode.children, znode.owner).hash(&mut hasher);
        znode.mark = hasher.finish();
        self.sum = self.sum.wrapping_sub(before).wrapping_add(znode.mark);
    }

    fn end(&mut self, session: u64, zxid: u64) {
        let mut paths = Vec::new();
        self.owned.visit(&|(owner, _)| owner.cmp(&session), &mut |(_, path), ()| paths.push(path.clone()));
        for path in &paths {
            self.remove(path, zxid);
        }
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        self.sum = self.sum.wrapping_add(hasher.finish());
        self.ended.insert(session, ());
    }

    /// Sessions whose end would remove one of the znodes that an operation is about, or a child of one.
    pub(super) fn owners_about(&self, op: &Op) -> Vec<u64> {
        let mut owners = Vec::new();
        for path in op.ask.steps().iter().map(Step::path) {
            owners.extend(self.nodes.find(|other| other.cmp(path)).map(|znode| znode.owner));
            for parent in [path.as_str(), path.parent()] {
                self.nodes
                    .visit(&|other| other.parent().cmp(parent), &mut |_, znode| owners.push(znode.owner));
            }
        }
        owners.sort_unstable();
        owners.dedup();
        owners.retain(|owner| *owner != 0);
        owners
    }

    fn has_ended(&self, session: u64) -> bool {
        self.ended.find(|other| other.cmp(&session)).is_some()
    }
}
