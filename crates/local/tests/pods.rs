//! Pods from the API to processes and back, in a whole cluster inside this process.

#[cfg(test)]
mod pods {
    mod connections;
    mod faults;
    mod lifecycle;
    mod placement;
    mod protocols;
    mod scale;
    mod shutdown;
    mod support;
}
