//! Lives through one drawn world and prints what happens:
//! `live elections|standbys SEED APPLICATIONS [MUTANT]`.

use lab_apps::drawn::live;
use lab_apps::hunt::{OF_CANDIDATES, OF_PROCESSES};
use lab_apps::mutants::{Mutant, OF_ELECTIONS, OF_STANDBYS};
use lab_apps::world::{Subject, World};
use lab_apps::{elections, standbys};
use node_recipes::rules::Sound;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize| args.get(at).and_then(|arg| arg.parse().ok()).unwrap_or(0);
    let (seed, apps) = (number(2), usize::try_from(number(3)).unwrap_or(3));
    let named = |mutant: &Mutant| Some(mutant.name) == args.get(4).map(String::as_str);
    match args.get(1).map(String::as_str) {
        Some("standbys") => match OF_STANDBYS.into_iter().find(named) {
            Some(mutant) => tell(seed, || standbys::world(apps, &mutant, OF_PROCESSES)),
            None => tell(seed, || standbys::world(apps, &Sound, OF_PROCESSES)),
        },
        _ => match OF_ELECTIONS.into_iter().find(named) {
            Some(mutant) => tell(seed, || elections::world(apps, 1, &mutant, OF_CANDIDATES)),
            None => tell(seed, || elections::world(apps, 1, &Sound, OF_CANDIDATES)),
        },
    }
}

fn tell<S: Subject + std::fmt::Debug>(seed: u64, world: impl Fn() -> World<S>) {
    let mut again = world();
    for event in live(world(), seed, 150).events {
        again.apply(event);
        println!("{event:?}\n{}", again.describe());
    }
    again.settle();
    println!("at the end\n{}", again.describe());
}
