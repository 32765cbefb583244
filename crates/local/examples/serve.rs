//! Serves a cluster until it is interrupted; the kubeconfig goes to the file named first.
use lockstep_local::embedded::{Embedded, Options};

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let file = args.next().expect("usage: serve KUBECONFIG [DATA_DIR]");
    let options = Options {
        listen: Some("127.0.0.1:0".parse().expect("an address")),
        data_dir: args.next().map(Into::into),
        ..Options::default()
    };
    let embedded = Embedded::start(options).await.expect("it starts");
    std::fs::write(file, embedded.kubeconfig().expect("it listens")).expect("written");
    tokio::signal::ctrl_c().await.expect("signals work");
    embedded.shutdown().await;
}
