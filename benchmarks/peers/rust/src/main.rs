//! The process of the Rust worker: does what the lines of its standard input say, as ContenderProcess tells.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, Worker, WorkerContext, WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

type Failure = Box<dyn std::error::Error + Send + Sync>;

static RAN: AtomicU64 = AtomicU64::new(0);
static WAITS: Mutex<Vec<(i64, i64)>> = Mutex::new(Vec::new());

#[derive(Clone, Default, Deserialize, Serialize)]
struct Payload {
    stamp: i64,
    millis: u64,
}

impl TaskHandler for Payload {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, _context: WorkerContext) -> impl IntoTaskHandlerResult {
        if self.stamp > 0 {
            WAITS.lock().unwrap().push((self.stamp, now_micros() - self.stamp));
        }
        if self.millis > 0 {
            tokio::time::sleep(Duration::from_millis(self.millis)).await;
        }
        RAN.fetch_add(1, Relaxed);
        Ok::<(), String>(())
    }
}

fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

struct Running {
    worker: Arc<Worker>,
    done: JoinHandle<Result<(), Failure>>,
}

struct Load {
    added: Arc<AtomicI64>,
    ending: Arc<AtomicBool>,
    done: JoinHandle<Result<(), Failure>>,
}

struct Process {
    tuned: bool,
    pool: PgPool,
    utils: WorkerUtils,
    running: Option<Running>,
    load: Option<Load>,
}

/// The settings of the worker's own performance test where `tuned`, else those that the Node.js worker gets.
fn options(tuned: bool) -> WorkerOptions {
    let (concurrency, local, delay_millis) = if tuned { (500, 5_000, 5) } else { (24, 500, 0) };
    WorkerOptions::default()
        .concurrency(concurrency)
        .poll_interval(Duration::from_millis(if tuned { 5 } else { 2_000 }))
        .local_queue(LocalQueueConfig::default().with_size(local))
        .complete_job_batch_delay(Duration::from_millis(delay_millis))
        .listen_os_shutdown_signals(false)
        .define_job::<Payload>()
}

async fn add_all(utils: &WorkerUtils, count: i64) -> Result<(), Failure> {
    let spec = JobSpec::default();
    utils.add_jobs(&vec![(Payload::default(), &spec); count as usize]).await?;
    Ok(())
}

async fn constant_load(
    utils: WorkerUtils,
    rate: i64,
    added: Arc<AtomicI64>,
    ending: Arc<AtomicBool>,
) -> Result<(), Failure> {
    let start = Instant::now();
    while !ending.load(Relaxed) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let due = (start.elapsed().as_secs_f64() * rate as f64) as i64;
        let missing = (due - added.load(Relaxed)).min((rate / 10).max(1));
        if missing > 0 {
            add_all(&utils, missing).await?;
            added.fetch_add(missing, Relaxed);
        }
    }
    Ok(())
}

/// A pause around the gap, spread like the other contenders' ones.
fn pause(gap_millis: i64) -> Duration {
    let spread = now_micros().unsigned_abs().wrapping_mul(6_364_136_223_846_793_005) >> 33;
    Duration::from_millis(gap_millis as u64 / 2 + spread % (gap_millis as u64 + 1))
}

impl Process {
    async fn obey(&mut self, name: &str, numbers: &[i64]) -> Result<String, Failure> {
        Ok(match name {
            "create" => {
                self.utils.migrate().await?;
                "0".into()
            }
            "start" => {
                let worker = Arc::new(options(self.tuned).pg_pool(self.pool.clone()).init().await?);
                let same = worker.clone();
                let done = tokio::spawn(async move { same.run().await.map_err(|e| e.to_string().into()) });
                self.running = Some(Running { worker, done });
                "0".into()
            }
            "stop" => {
                self.stop().await?;
                "0".into()
            }
            "ran" => RAN.load(Relaxed).to_string(),
            "waits" => serde_json::to_string(&std::mem::take(&mut *WAITS.lock().unwrap()))?,
            "heap" => "0".into(),
            "add" => {
                let start = Instant::now();
                for _ in 0..numbers[0] {
                    self.utils.add_job(Payload::default(), JobSpec::default()).await?;
                }
                start.elapsed().as_secs_f64().to_string()
            }
            "bulk" => {
                let start = Instant::now();
                let mut left = numbers[0];
                while left > 0 {
                    add_all(&self.utils, left.min(numbers[1])).await?;
                    left -= numbers[1];
                }
                start.elapsed().as_secs_f64().to_string()
            }
            "ping" => self.ping(numbers[0], numbers[1], numbers[2]).await?,
            "load" => {
                let (added, ending) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
                let work = constant_load(self.utils.clone(), numbers[0], added.clone(), ending.clone());
                self.load = Some(Load { added, ending, done: tokio::spawn(work) });
                "0".into()
            }
            "added" => self.load.as_ref().map_or(0, |load| load.added.load(Relaxed)).to_string(),
            "unload" => match self.load.take() {
                None => "0".into(),
                Some(load) => {
                    load.ending.store(true, Relaxed);
                    load.done.await??;
                    load.added.load(Relaxed).to_string()
                }
            },
            _ => return Err(format!("unknown command {name}").into()),
        })
    }

    async fn ping(&self, count: i64, gap: i64, lead: i64) -> Result<String, Failure> {
        for _ in 0..count {
            tokio::time::sleep(pause(gap)).await;
            let stamp = now_micros() + lead * 1_000;
            let spec = match lead {
                0 => JobSpec::default(),
                _ => JobSpec { run_at: DateTime::from_timestamp_micros(stamp), ..JobSpec::default() },
            };
            self.utils.add_job(Payload { stamp, millis: 0 }, spec).await?;
        }
        Ok(count.to_string())
    }

    async fn stop(&mut self) -> Result<(), Failure> {
        if let Some(running) = self.running.take() {
            running.worker.request_shutdown();
            running.done.await??;
        }
        Ok(())
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the first argument must be the database's URL")?;
    let tuned = arguments.next().as_deref() == Some("tuned");
    let runtime = Runtime::new()?;
    let pool = runtime.block_on(sqlx::postgres::PgPoolOptions::new().max_connections(30).connect(&url))?;
    let utils = WorkerUtils::new(pool.clone(), "graphile_worker");
    let mut process = Process { tuned, pool, utils, running: None, load: None };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let numbers = words.map(str::parse).collect::<Result<Vec<i64>, _>>()?;
        println!("={}", runtime.block_on(process.obey(name, &numbers))?);
        std::io::stdout().flush()?;
    }
    runtime.block_on(process.stop())
}
