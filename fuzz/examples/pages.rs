//! The program of the target.
#![no_main]

lockstep_fuzz::program!(pages);
