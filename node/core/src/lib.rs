//! One member of the ensemble as a pure state machine.
