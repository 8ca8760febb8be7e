//! The admin server: ZooKeeper's commands as JSON, at `/commands/NAME`; and the page with the metrics.
//!
//! Names, aliases and fields are ZooKeeper's. As there, an unknown command and one that needs a leader are
//! answered with status 200 and an `error`, because that is what those who ask look at.

mod commands;

use std::rc::Rc;

use hyper::StatusCode;
use serde_json::{Map, Value, json};

use crate::http::{Page, Pages};
use crate::metrics;
use crate::queries::Queries;
use crate::view::Want;
use commands::Command;

/// The longest value of an argument.
const MAX_ARGUMENT: usize = 32;

/// The commands.
#[derive(Debug)]
pub(crate) struct Admin {
    queries: Rc<Queries>,
}

impl Admin {
    pub(crate) fn new(queries: Rc<Queries>) -> Self {
        Self { queries }
    }

    /// Links to all commands.
    fn index(url: &str) -> Page {
        let link = |command: &Command| format!("<a href=\"{url}/{0}\">{0}</a>\n<br/>\n", command.name());
        let mut commands: Vec<_> = Command::ALL.iter().collect();
        commands.sort_by_key(|command| command.name());
        let text = commands.into_iter().map(link).collect();
        Page { status: StatusCode::OK, kind: "text/html; charset=utf-8", text }
    }

    async fn run(&self, name: &str, query: Option<&str>) -> Page {
        let Some(command) = Command::from_name(name) else {
            return response(name, Map::new(), Some(&format!("Unknown command: {name}")));
        };
        match command {
            Command::GetTraceMask => {
                return response(
                    command.name(),
                    fields([("tracemask", json!(self.queries.trace_mask()))]),
                    None,
                );
            }
            Command::SetTraceMask => return response(command.name(), self.set_trace_mask(query), None),
            _ => {}
        }
        let made = self.queries.report(command.wants(), move |facts| {
            let status = &facts.view.status;
            if command.needs_a_leader() && !status.established && !status.read_only {
                let error = "This ZooKeeper instance is not currently serving requests";
                return response(command.name(), Map::new(), Some(error));
            }
            response(command.name(), commands::run(command, &facts), None)
        });
        made.await.unwrap_or_else(Page::too_many)
    }

    fn set_trace_mask(&self, query: Option<&str>) -> Map<String, Value> {
        let mut pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let wanted = "setTraceMask requires long traceMask argument";
        match pairs.find(|(name, _)| *name == "traceMask").map(|(_, value)| value) {
            None => fields([("error", json!(wanted))]),
            Some(value) => match value.parse::<i64>() {
                Ok(mask) => fields([("tracemask", json!(self.queries.trace(mask)))]),
                Err(_) => {
                    let shown: String = value.chars().take(MAX_ARGUMENT).collect();
                    fields([("error", json!(format!("{wanted}, got {shown}")))])
                }
            },
        }
    }
}

impl Pages for Admin {
    async fn page(&self, path: &str, query: Option<&str>) -> Page {
        let url = self.queries.command_url().unwrap_or_default();
        match path.strip_prefix(url) {
            Some("" | "/") => Self::index(url),
            Some(rest) => match rest.strip_prefix('/') {
                Some(name) if !name.contains('/') => self.run(name, query).await,
                Some(_) | None => Page::nothing_here(),
            },
            None => Page::nothing_here(),
        }
    }
}

/// The fields of an answer with the name of its command.
fn response(command: &str, mut fields: Map<String, Value>, error: Option<&str>) -> Page {
    fields.insert("command".to_owned(), json!(command));
    fields.entry("error").or_insert_with(|| json!(error));
    // A map of values is always JSON.
    let text = serde_json::to_string_pretty(&fields).unwrap_or_default();
    Page { status: StatusCode::OK, kind: "application/json", text }
}

fn fields<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// `/metrics`, for Prometheus.
#[derive(Debug)]
pub(crate) struct MetricsPage {
    queries: Rc<Queries>,
}

impl MetricsPage {
    pub(crate) fn new(queries: Rc<Queries>) -> Self {
        Self { queries }
    }
}

impl Pages for MetricsPage {
    async fn page(&self, path: &str, _: Option<&str>) -> Page {
        if path != "/metrics" {
            return Page::nothing_here();
        }
        let made = self.queries.report(Want { quotas: true, ..Want::default() }, |facts| {
            metrics::prometheus(&facts.view, &facts.metrics)
        });
        match made.await {
            Some(text) => {
                Page { status: StatusCode::OK, kind: "text/plain; version=0.0.4; charset=utf-8", text }
            }
            None => Page::too_many(),
        }
    }
}
