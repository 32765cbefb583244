use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use tempfile::TempDir;

use super::*;

struct Log {
    _folder: TempDir,
    dirs: NodeDirs,
    id: ContainerId,
    log_dir: PathBuf,
}

impl Log {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dirs = NodeDirs::new(folder.path());
        let id = ContainerId { pod_uid: "u".into(), container: "c".into(), attempt: 1 };
        let log_dir = dirs.pod_logs("ns", "p", "u").join("c");
        fs::create_dir_all(&log_dir).unwrap();
        fs::create_dir_all(dirs.container(&id)).unwrap();
        Self { _folder: folder, dirs, id, log_dir }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.log_dir.join(name), text).unwrap();
    }

    fn append(&self, text: &str) {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.log_dir.join("1.log"))
            .unwrap();
        io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    }

    fn read(&self, options: LogOptions) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        read(&self.dirs, "ns", "p", &self.id, options)
    }

    async fn all(&self, options: LogOptions) -> String {
        let chunks: Vec<_> = self.read(options).try_collect().await.unwrap();
        String::from_utf8(chunks.concat()).unwrap()
    }
}

fn line(second: u32, stream: &str, tag: &str, text: &str) -> String {
    format!("2026-01-01T00:00:{second:02}.000000000Z {stream} {tag} {text}\n")
}

#[tokio::test]
async fn options_choose_lines() {
    let log = Log::new();
    log.write("0.log", &line(0, "stdout", "F", "other instance"));
    log.write("1.log.9", &line(0, "stdout", "F", "oldest"));
    log.write("1.log.10", &(line(1, "stdout", "F", "one") + &line(2, "stderr", "F", "two")));
    let newest = line(3, "stdout", "P", "thr") + &line(3, "stdout", "F", "ee");
    log.write("1.log", &(newest + "garbage\n" + &line(4, "stdout", "F", "four")));
    let plain = LogOptions::default();
    let since = |text: &str| Some(text.parse().unwrap());
    let cases = [
        (plain.clone(), "oldest\none\ntwo\nthree\nfour\n"),
        (LogOptions { tail_lines: Some(1), ..plain.clone() }, "four\n"),
        (LogOptions { tail_lines: Some(5), ..plain.clone() }, "two\nthree\nfour\n"),
        (LogOptions { tail_lines: Some(0), ..plain.clone() }, ""),
        (LogOptions { tail_lines: Some(99), ..plain.clone() }, "oldest\none\ntwo\nthree\nfour\n"),
        (LogOptions { since: since("2026-01-01T00:00:03Z"), ..plain.clone() }, "three\nfour\n"),
        (LogOptions { limit_bytes: Some(9), ..plain.clone() }, "oldest\non"),
        (LogOptions { limit_bytes: Some(0), ..plain.clone() }, ""),
        (LogOptions { stream: LogStream::Stderr, ..plain.clone() }, "two\n"),
        (
            LogOptions { timestamps: true, tail_lines: Some(4), ..plain },
            "2026-01-01T00:00:03.000000000Z three\n2026-01-01T00:00:04.000000000Z four\n",
        ),
    ];
    for (options, want) in cases {
        assert_eq!(log.all(options.clone()).await, want, "{options:?}");
    }
}

#[tokio::test]
async fn the_end_of_a_big_file_is_found_from_behind() {
    let log = Log::new();
    let mut text = String::new();
    for number in 0..50_000 {
        let _ = writeln!(text, "2026-01-01T00:00:00.000000000Z stdout F {number}");
    }
    log.write("1.log", &text);
    let options = LogOptions { tail_lines: Some(3), ..LogOptions::default() };
    assert_eq!(log.all(options).await, "49997\n49998\n49999\n");
    assert_eq!(log.all(LogOptions::default()).await.lines().count(), 50_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn following_sees_every_line_through_rotation_until_the_end() {
    let log = Log::new();
    let socket = log.dirs.container(&log.id).join(files::CONTROL);
    fs::write(&socket, "").unwrap();
    log.append(&line(0, "stdout", "F", "first"));
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let reading = tokio::spawn(log.read(options).try_collect::<Vec<_>>());
    let path = |name: &str| log.log_dir.join(name);
    for number in 0..300 {
        log.append(&line(1, "stdout", "F", &number.to_string()));
        if number % 3 == 2 {
            fs::rename(path("1.log"), path(&format!("1.log.{}", number / 3 + 1))).unwrap();
        }
    }
    log.append(&line(2, "stdout", "F", "last"));
    fs::remove_file(socket).unwrap();
    let chunks = tokio::time::timeout(Duration::from_secs(10), reading).await.unwrap().unwrap();
    let text = String::from_utf8(chunks.unwrap().concat()).unwrap();
    let want: Vec<_> = (0..300).map(|number| number.to_string()).collect();
    assert_eq!(text, format!("first\n{}\nlast\n", want.join("\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn following_ends_when_the_pod_is_forgotten() {
    let log = Log::new();
    fs::write(log.dirs.container(&log.id).join(files::CONTROL), "").unwrap();
    log.append(&line(0, "stdout", "F", "first"));
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let mut reading = Box::pin(log.read(options));
    assert_eq!(reading.next().await.unwrap().unwrap(), "first\n");
    fs::remove_dir_all(log.dirs.pod("u")).unwrap();
    let end = tokio::time::timeout(Duration::from_secs(10), reading.next()).await.unwrap();
    assert!(end.is_none());
}
