//! Placement: which node a pod goes to.
