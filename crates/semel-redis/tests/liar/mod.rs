//! A server that speaks the protocol of Redis and cannot be trusted.
//!
//! It keeps everything that was ever written, whatever its time, and answers with any of it: the value, an older one of the same name, one of
//! another name, one that is cut off or changed, nothing, something that is no value at all, or too late. It forgets writes, and keeps what it was told
//! to replace.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What becomes of one value on its way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lie {
    /// The last one that was written.
    None,
    /// One that was written before it.
    Older,
    /// One of another name.
    OfAnother,
    Truncated,
    Altered,
    /// It has none.
    Forgotten,
    Garbage,
}

/// How it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Habit {
    /// By chance, in every way.
    ByChance,
    /// Always in this way.
    Always(Lie),
    /// Always after so long.
    Late(Duration),
    /// Every command fails so.
    Error(&'static str),
}

#[derive(Debug)]
pub(crate) struct Liar {
    address: SocketAddr,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug)]
struct Memory {
    habit: Habit,
    frozen: bool,
    values: HashMap<Vec<u8>, Vec<Vec<u8>>>,
}

impl Liar {
    /// One that lies by chance, in a thread of its own: it outlives the runtime of a test.
    pub(crate) fn start() -> Self {
        Self::with_habit(Habit::ByChance)
    }

    pub(crate) fn with_habit(habit: Habit) -> Self {
        let memory = Arc::new(Mutex::new(Memory { habit, frozen: false, values: HashMap::new() }));
        let (told, address) = std::sync::mpsc::channel();
        let kept = Arc::clone(&memory);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(stream, Arc::clone(&kept)));
                }
            });
        });
        Self { address: address.recv().unwrap(), memory }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub(crate) fn behave(&self, habit: Habit) {
        self.memory.lock().unwrap().habit = habit;
    }

    /// From now on, nothing that is written is kept.
    pub(crate) fn freeze(&self) {
        self.memory.lock().unwrap().frozen = true;
    }

    /// How many values were written under names of records.
    pub(crate) fn written(&self) -> usize {
        self.memory.lock().unwrap().values.values().map(Vec::len).sum()
    }
}

async fn serve(stream: TcpStream, memory: Arc<Mutex<Memory>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let command = command(&mut read).await?;
        let habit = memory.lock().unwrap().habit;
        let is_ours = matches!(&command[0][..], b"MGET" | b"SET" | b"EVAL");
        match habit {
            Habit::Late(by) if is_ours => tokio::time::sleep(by).await,
            Habit::ByChance if is_ours && one_in(500) => tokio::time::sleep(Duration::from_millis(60)).await,
            _ => {}
        }
        let answer = match habit {
            Habit::Error(error) if is_ours => format!("-{error}\r\n").into_bytes(),
            _ => memory.lock().unwrap().answer(&command),
        };
        write.write_all(&answer).await.ok()?;
    }
}

impl Memory {
    fn answer(&mut self, command: &[Vec<u8>]) -> Vec<u8> {
        match &command[0][..] {
            b"MGET" => {
                let mut answer = format!("*{}\r\n", command.len() - 1).into_bytes();
                for name in &command[1..] {
                    match self.lie(name) {
                        Some(value) => {
                            answer.extend(format!("${}\r\n", value.len()).bytes());
                            answer.extend(value);
                            answer.extend(b"\r\n");
                        }
                        None => answer.extend(b"$-1\r\n"),
                    }
                }
                answer
            }
            b"SET" => {
                self.write(&command[1], &command[2]);
                b"+OK\r\n".to_vec()
            }
            b"EVAL" => {
                self.write(&command[3], &command[4]);
                b":1\r\n".to_vec()
            }
            b"PING" => b"+PONG\r\n".to_vec(),
            _ => b"+OK\r\n".to_vec(),
        }
    }

    fn write(&mut self, name: &[u8], value: &[u8]) {
        let by_chance = matches!(self.habit, Habit::ByChance);
        if name != b"semel:probe" && !self.frozen && !(by_chance && one_in(4)) {
            self.values.entry(name.to_vec()).or_default().push(value.to_vec());
        }
    }

    fn lie(&self, name: &[u8]) -> Option<Vec<u8>> {
        const ALL: [Lie; 12] = [
            Lie::None,
            Lie::None,
            Lie::None,
            Lie::Older,
            Lie::Older,
            Lie::Older,
            Lie::Older,
            Lie::OfAnother,
            Lie::Truncated,
            Lie::Altered,
            Lie::Forgotten,
            Lie::Garbage,
        ];
        let lie = match self.habit {
            Habit::Always(lie) => lie,
            Habit::ByChance => ALL[random() % ALL.len()],
            Habit::Late(_) | Habit::Error(_) => Lie::None,
        };
        let values = self.values.get(name);
        let last = || values.and_then(|values| values.last()).cloned();
        match lie {
            Lie::None => last(),
            Lie::Older => values.map(|values| values[random() % values.len()].clone()),
            Lie::OfAnother => {
                let others: Vec<_> = self.values.iter().filter(|(other, _)| *other != name).collect();
                (!others.is_empty()).then(|| others[random() % others.len()].1[0].clone())
            }
            Lie::Truncated => last().map(|value| value[..random() % value.len()].to_vec()),
            Lie::Altered => last().map(|mut value| {
                let at = random() % value.len();
                value[at] ^= 1 << (random() % 8);
                value
            }),
            Lie::Forgotten => None,
            Lie::Garbage => Some((0..random() % 200).map(|_| random().to_le_bytes()[0]).collect()),
        }
    }
}

/// An array of bulk strings.
async fn command<R: tokio::io::AsyncBufRead + Unpin>(read: &mut R) -> Option<Vec<Vec<u8>>> {
    let count = number(read, b'*').await?;
    let mut command = Vec::with_capacity(count);
    for _ in 0..count {
        let mut part = vec![0; number(read, b'$').await? + 2];
        read.read_exact(&mut part).await.ok()?;
        part.truncate(part.len() - 2);
        command.push(part);
    }
    command[0].make_ascii_uppercase();
    Some(command)
}

async fn number<R: tokio::io::AsyncBufRead + Unpin>(read: &mut R, mark: u8) -> Option<usize> {
    let mut line = Vec::new();
    read.read_until(b'\n', &mut line).await.ok()?;
    let line = line.strip_suffix(b"\r\n")?;
    let (first, digits) = line.split_first()?;
    assert_eq!(*first, mark, "the protocol of Redis");
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn one_in(count: usize) -> bool {
    random().is_multiple_of(count)
}

fn random() -> usize {
    usize::try_from(RandomState::new().hash_one(0) & 0xffff_ffff).unwrap()
}
