//! How cost grows with operations, with processes, with operations that nobody answered, and on objects of
//! other kinds: `cargo bench -p checker --bench growth [-- FOLDER]`.
//!
//! Prints seconds of processor time of one thread (the clock on the wall would measure the neighbours), with
//! the exponent of the growth between each two points, and draws each series into FOLDER as SVG. Near-linear
//! means an exponent near 1.

#[path = "../examples/generate/simulation.rs"]
#[expect(dead_code, reason = "shared with the example, which falsifies in more ways")]
mod simulation;

#[path = "../examples/generate_objects/objects.rs"]
mod objects;

#[path = "../examples/shared/processor.rs"]
mod processor;

use std::path::{Path, PathBuf};

use checker::catalogue::ModelName;
use checker::history::{Event, History, Record};
use checker::model::counter::Counter;
use checker::model::keyed::Keyed;
use checker::model::kv::Kv;
use checker::model::mutex::Mutex;
use checker::model::queue::Queue;
use checker::model::set::Set;
use checker::model::{Model, pair};
use checker::stream::{Answer, Checker};
use checker::verdict::Verdict;
use checker::{Budget, linearizable, search};
use plotters::prelude::*;
use processor::cpu_seconds;
use simulation::{Options, Simulation};

/// A check is repeated until it took this long.
const LEAST_SECONDS: f64 = 0.25;

/// A way of checking.
#[derive(Clone, Copy)]
enum Way {
    /// A history in memory, by the portfolio.
    Portfolio,
    /// Record by record, by the stream.
    Stream,
    /// A history of another object in memory, by its portfolio.
    Object(ModelName),
}

/// One line of a drawing.
struct Series {
    name: &'static str,
    way: Way,
    options: Options,
}

/// One drawing: what grows, the values it takes, and how a value becomes a history.
struct Growth {
    name: &'static str,
    title: &'static str,
    values: Vec<f64>,
    /// Whether the values grow by factors.
    logarithmic: bool,
    apply: fn(&mut Options, f64),
    series: Vec<Series>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo gives its own `--bench` along.
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).map(PathBuf::from);
    for growth in growths() {
        println!("{}", growth.title);
        let lines: Vec<Vec<(f64, f64)>> =
            growth.series.iter().map(|series| measure(&growth, series)).collect();
        if let Some(folder) = &folder {
            std::fs::create_dir_all(folder)?;
            draw(&growth, &lines, &folder.join(format!("growth-{}.svg", growth.name)))?;
        }
    }
    Ok(())
}

fn kinds(cas: Options, plain: Options) -> Vec<Series> {
    let reads = Options { write: 0.1, ..plain.clone() };
    vec![
        Series { name: "read/write", way: Way::Portfolio, options: plain.clone() },
        Series { name: "with cas", way: Way::Portfolio, options: cas },
        Series { name: "mostly reads", way: Way::Portfolio, options: reads },
        Series { name: "read/write, streamed", way: Way::Stream, options: plain },
    ]
}

fn growths() -> Vec<Growth> {
    let plain = Options { ops: 100_000, seed: 7, ..Options::default() };
    let cas = Options { write: 0.3, cas: 0.2, ..plain.clone() };
    vec![
        Growth {
            name: "operations",
            title: "operations on one register, 10 processes",
            values: vec![1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6],
            logarithmic: true,
            apply: |options, value| options.ops = whole(value),
            series: kinds(cas.clone(), plain.clone()),
        },
        Growth {
            name: "processes",
            title: "processes, 100,000 operations on one register",
            values: vec![2.0, 5.0, 10.0, 20.0, 50.0, 100.0],
            logarithmic: true,
            apply: |options, value| options.conc = whole(value),
            series: kinds(cas.clone(), plain.clone()),
        },
        Growth {
            name: "open",
            title: "changes that nobody answered, of a thousand; 100,000 operations by 10 processes",
            values: vec![0.0, 1.0, 5.0, 10.0, 50.0, 100.0, 200.0],
            logarithmic: false,
            apply: |options, value| options.info = value / 1000.0,
            series: kinds(cas, plain.clone()),
        },
        Growth {
            name: "objects",
            title: "operations on other objects, 10 processes",
            values: vec![1e3, 3e3, 1e4, 3e4, 1e5],
            logarithmic: true,
            apply: |options, value| options.ops = whole(value),
            series: [ModelName::Kv, ModelName::Mutex, ModelName::Set, ModelName::Queue, ModelName::Counter]
                .map(|model| Series { name: model.name(), way: Way::Object(model), options: plain.clone() })
                .into(),
        },
    ]
}

fn measure(growth: &Growth, series: &Series) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for &value in &growth.values {
        let mut options = series.options.clone();
        (growth.apply)(&mut options, value);
        let (seconds, verdict) = mean(series.way, options);
        let before = points.last().filter(|_| growth.logarithmic);
        let exponent = before.map(|&(x, y)| (seconds / y).ln() / (value / x).ln());
        let exponent = exponent.map(|exponent| format!("  exponent {exponent:.2}")).unwrap_or_default();
        println!("  {:22} {value:>9}  {seconds:9.5} s  {verdict}{exponent}", series.name);
        if verdict != Verdict::Unknown {
            points.push((value, seconds));
        }
    }
    points
}

/// The mean processor time, and the verdict. What a stream leaves to the search is unknown.
fn mean(way: Way, options: Options) -> (f64, Verdict) {
    match way {
        Way::Portfolio => {
            let history = History::from_events(Simulation::new(options)).expect("sound");
            repeated(|| linearizable::check(&history, &Budget::default()).verdict)
        }
        Way::Stream => {
            let events: Vec<Event> = Simulation::new(options).collect();
            repeated(|| {
                let mut checker = Checker::new();
                for event in &events {
                    checker.push(event).expect("sound");
                }
                let valid = checker.finish().into_iter().all(|key| matches!(key.answer, Answer::Valid));
                if valid { Verdict::Valid } else { Verdict::Unknown }
            })
        }
        Way::Object(model) => {
            let Options { ops: operations, conc: clients, seed, .. } = options;
            let records = objects::records(objects::Wanted {
                model,
                read_whole: false,
                operations,
                clients,
                seed,
                falsified: false,
            });
            match model {
                ModelName::Kv => object(&Keyed::new(Kv::default()), records),
                ModelName::Mutex => object(&Mutex, records),
                ModelName::Set => object(&Set::default(), records),
                ModelName::Queue => object(&Queue::default(), records),
                _ => object(&Counter, records),
            }
        }
    }
}

fn object<M: Model<Op: Send + Sync> + Sync>(model: &M, records: Vec<Record>) -> (f64, Verdict) {
    let calls = pair(model, records.into_iter().map(Ok)).expect("sound");
    repeated(|| search::judge(model, &calls, &Budget::default(), 1, false).result.verdict)
}

/// Some systems count a thread's time in ticks of four milliseconds: what is short is done many times.
fn repeated(check: impl Fn() -> Verdict) -> (f64, Verdict) {
    let mut verdict = check();
    let begin = cpu_seconds();
    for times in 1_u32.. {
        verdict = check();
        let spent = cpu_seconds() - begin;
        if spent >= LEAST_SECONDS {
            return (spent / f64::from(times), verdict);
        }
    }
    (f64::NAN, verdict)
}

fn draw(growth: &Growth, lines: &[Vec<(f64, f64)>], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    const COLOURS: [RGBColor; 5] = [
        RGBColor(0x1f, 0x5f, 0xa8),
        RGBColor(0xb4, 0x5a, 0x14),
        RGBColor(0x2f, 0x7d, 0x4f),
        RGBColor(0x6f, 0xa3, 0xd8),
        RGBColor(0x8a, 0x4f, 0x9e),
    ];
    let (first, last) = (growth.values[0], growth.values[growth.values.len() - 1]);
    let root = SVGBackend::new(path, (720, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut builder = ChartBuilder::on(&root);
    builder
        .caption(growth.title, ("sans-serif", 15))
        .margin(12)
        .margin_right(40)
        .x_label_area_size(34)
        .y_label_area_size(64);
    // One scale for all drawings, so that they can be held beside each other.
    let seconds = (1e-4..10.0).log_scale();
    macro_rules! chart {
        ($range:expr) => {{
            let mut chart = builder.build_cartesian_2d($range, seconds)?;
            chart
                .configure_mesh()
                .y_desc("seconds")
                .light_line_style(WHITE)
                .x_labels(6)
                .x_label_formatter(&|x| format!("{x}"))
                .y_label_formatter(&|y| format!("{y}"))
                .draw()?;
            for ((series, line), colour) in growth.series.iter().zip(lines).zip(COLOURS) {
                chart
                    .draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)).point_size(3))?
                    .label(series.name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
            }
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::LowerRight)
                .background_style(WHITE)
                .border_style(RGBColor(0xcc, 0xcc, 0xcc))
                .draw()?;
        }};
    }
    if growth.logarithmic {
        chart!((first..last).log_scale())
    } else {
        chart!(first..last)
    }
    root.present()?;
    Ok(())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small whole numbers")]
fn whole(value: f64) -> u64 {
    value as u64
}
