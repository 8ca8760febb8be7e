//! What becomes of it: the simulated tree, with the rule that it may break.

use super::{Breach, Node, Nodes, Reply, Run, Sent, map, parent_of, signed};
use crate::history::Datum;

/// Nothing changes, and the client is told why.
fn refuse(error: &'static str) -> Reply {
    Err((error, Datum::Nil))
}

impl Run<'_> {
    pub(super) fn take_effect(&mut self, sent: &Sent) -> (Reply, u64) {
        if self.plan.breach == Some(Breach::StaleRead) && self.random.per_mille(100) {
            self.before = self.nodes.clone();
        }
        let read = matches!(sent.f, "get" | "exists" | "children");
        if read && self.plan.breach == Some(Breach::StaleRead) && self.random.per_mille(300) {
            return (self.step(&self.before.clone(), sent), self.before.zxid);
        }
        if read {
            return (self.step(&self.nodes, sent), self.nodes.zxid);
        }
        self.nodes.zxid += 1;
        let zxid = self.nodes.zxid;
        if self.nodes.ended.contains(&sent.session) && !matches!(sent.f, "close" | "expire" | "leave") {
            return (Err(("session-expired", Datum::Nil)), zxid);
        }
        let reply = match sent.f {
            "close" | "expire" | "leave" => {
                self.end(sent.session);
                Ok(Datum::Nil)
            }
            "multi" => self.multi(sent),
            _ => {
                self.undo.clear();
                self.change(sent)
            }
        };
        (reply, zxid)
    }

    fn end(&mut self, session: u64) {
        self.nodes.ended.insert(session);
        if self.plan.breach == Some(Breach::EphemeralSurvives) {
            return;
        }
        let gone: Vec<String> = (self.nodes.by_path.iter())
            .filter(|(_, node)| node.owner == session)
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            self.remove(&path);
        }
    }

    fn multi(&mut self, sent: &Sent) -> Reply {
        self.undo.clear();
        let mut results = Vec::new();
        for (at, op) in sent.value.get("ops").and_then(Datum::as_list).unwrap_or_default().iter().enumerate()
        {
            let f = match op.get("f").and_then(Datum::as_text) {
                Some("create") => "create",
                Some("delete") => "delete",
                Some("set") => "set",
                _ => "check",
            };
            match self.change(&Sent { f, value: op.clone(), ..sent.clone() }) {
                Ok(result) => results.push(result),
                Err((error, _)) => {
                    if self.plan.breach != Some(Breach::HalfMulti) {
                        self.roll_back();
                    }
                    return Err((error, map([("failed", signed(at as u64))])));
                }
            }
        }
        Ok(map([("results", Datum::List(results))]))
    }

    fn roll_back(&mut self) {
        while let Some((path, node)) = self.undo.pop() {
            match node {
                Some(node) => self.nodes.by_path.insert(path, node),
                None => self.nodes.by_path.remove(&path),
            };
        }
    }

    /// Remembers how a znode stands before it is changed.
    fn keep(&mut self, path: &str) {
        self.undo.push((path.to_owned(), self.nodes.by_path.get(path).cloned()));
    }

    fn create(&mut self, sent: &Sent) -> Reply {
        let path = sent.value.get("path").and_then(Datum::as_text).unwrap_or_default().to_owned();
        let data = sent.value.get("data").cloned().unwrap_or_default();
        let zxid = self.nodes.zxid;
        let flag = |name: &str| {
            sent.value.get("flags").and_then(Datum::as_list).unwrap_or_default().contains(&Datum::text(name))
        };
        let (sequential, ephemeral) = (flag("sequential"), flag("ephemeral"));
        let parent = parent_of(&path);
        let Some(above) = self.nodes.by_path.get(&parent) else { return refuse("no-node") };
        let number = match self.plan.breach {
            Some(Breach::CounterGoesBack) => above.children.len() as u64,
            _ => above.counter.cast_unsigned(),
        };
        let made = if sequential { format!("{path}{number:010}") } else { path };
        let of_ephemeral = above.owner != 0;
        if self.nodes.by_path.contains_key(&made) {
            return refuse("node-exists");
        }
        if of_ephemeral {
            return refuse("no-children-for-ephemerals");
        }
        let owner = if ephemeral { sent.session } else { 0 };
        let node = Node { data, owner, zxids: [zxid; 3], ..Node::default() };
        let stat = self.stat(&node);
        self.keep(&made);
        self.keep(&parent);
        self.nodes.by_path.insert(made.clone(), node);
        if let Some(above) = self.nodes.by_path.get_mut(&parent) {
            above.children.insert(made[made.rfind('/').unwrap_or(0) + 1..].to_owned());
            above.child_changes += 1;
            above.counter += 1;
            above.zxids[2] = zxid;
        }
        Ok(map([("path", Datum::text(&made)), ("stat", stat)]))
    }

    fn change(&mut self, sent: &Sent) -> Reply {
        if sent.f == "create" {
            return self.create(sent);
        }
        let path = sent.value.get("path").and_then(Datum::as_text).unwrap_or_default().to_owned();
        let data = sent.value.get("data").cloned().unwrap_or_default();
        let asked = sent.value.get("version").and_then(Datum::as_int);
        let zxid = self.nodes.zxid;
        let Some(node) = self.nodes.by_path.get(&path) else { return refuse("no-node") };
        let ignored = self.plan.breach == Some(Breach::VersionIgnored) && self.random.per_mille(300);
        if asked.is_some_and(|asked| asked != node.version) && !ignored {
            return refuse("bad-version");
        }
        match sent.f {
            "delete" => {
                if !node.children.is_empty() && self.plan.breach != Some(Breach::ParentDeleted) {
                    return refuse("not-empty");
                }
                self.keep(&path);
                self.keep(&parent_of(&path));
                self.remove(&path);
                Ok(Datum::Nil)
            }
            "set" => {
                let skip = self.plan.breach == Some(Breach::VersionSkips) && self.random.per_mille(300);
                let mut node = node.clone();
                node.data = data;
                node.version += if skip { 2 } else { 1 };
                node.zxids[1] = zxid;
                let stat = self.stat(&node);
                self.keep(&path);
                self.nodes.by_path.insert(path, node);
                Ok(map([("stat", stat)]))
            }
            _ => Ok(Datum::Nil),
        }
    }

    fn remove(&mut self, path: &str) {
        if self.nodes.by_path.remove(path).is_some()
            && let Some(parent) = self.nodes.by_path.get_mut(&parent_of(path))
        {
            parent.children.remove(&path[path.rfind('/').unwrap_or(0) + 1..]);
            parent.child_changes += 1;
            parent.zxids[2] = self.nodes.zxid;
        }
    }

    /// A read.
    fn step(&self, nodes: &Nodes, sent: &Sent) -> Reply {
        let path = sent.value.get("path").and_then(Datum::as_text).unwrap_or_default();
        let Some(node) = nodes.by_path.get(path) else { return Err(("no-node", Datum::Nil)) };
        let stat = ("stat", self.stat(node));
        Ok(match sent.f {
            "get" => map([("data", node.data.clone()), stat]),
            "children" => map([
                ("children", Datum::List(node.children.iter().map(|name| Datum::text(name)).collect())),
                stat,
            ]),
            _ => map([("stat", self.stat_or_sign(node))]),
        })
    }

    /// Without Stats an `exists` still says that it is there.
    fn stat_or_sign(&self, node: &Node) -> Datum {
        if self.plan.stats { self.stat(node) } else { map([]) }
    }

    fn stat(&self, node: &Node) -> Datum {
        if !self.plan.stats {
            return Datum::Nil;
        }
        let length = node.data.as_text().map_or(0, str::len);
        let [czxid, mzxid, pzxid] = node.zxids;
        let zxids = [("czxid", signed(czxid)), ("mzxid", signed(mzxid)), ("pzxid", signed(pzxid))];
        let counts = [
            ("version", Datum::Int(node.version)),
            ("cversion", Datum::Int(node.child_changes)),
            ("ephemeralOwner", signed(node.owner)),
            ("dataLength", signed(length as u64)),
            ("numChildren", signed(node.children.len() as u64)),
        ];
        map(zxids.into_iter().filter(|_| self.plan.zxids).chain(counts))
    }
}
