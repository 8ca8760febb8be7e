//! Lives through worlds of sound applications by the thousand: `seeds FROM TO`.

use lab_apps::hunt::accused;

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let began = std::time::Instant::now();
    let (from, to) = (args.first().copied().unwrap_or(0), args.get(1).copied().unwrap_or(1000));
    for seed in from..to {
        for (recipe, broken) in accused(seed) {
            println!("{recipe} {seed}: {broken:?}");
        }
    }
    println!("{from}..{to} in {:?}", began.elapsed());
}
