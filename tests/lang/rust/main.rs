mod other;

use std::io::{self, BufRead, Write};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args[0].as_str() {
        "talk" => {
            println!("{}", other::greeting());
            for a in &args[1..] {
                println!("arg: {}", a);
            }
            for line in io::stdin().lock().lines() {
                println!("stdin: {}", line.unwrap());
            }
            std::process::exit(7);
        }
        "fault" => panic!("boom ä"),
        "big" => {
            for _ in 0..10 {
                io::stdout().write_all("x".repeat(1 << 20).as_bytes()).unwrap();
            }
        }
        "loop" => loop {
            std::hint::spin_loop()
        },
        _ => {
            let mut all = Vec::new();
            loop {
                all.push(vec![1u8; 1 << 20]);
            }
        }
    }
}
