//! The flags of the log and of telemetry.

use clap::Args;

use crate::logs::LogFormat;

/// Flags for the content and the format of the log, and for telemetry.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogFlags {
    /// How log lines look; they go to standard error.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub log_format: LogFormat,

    /// What to log: error, warn, info, debug or trace, also per module, as in
    /// "warn,doorward_server=debug".
    #[arg(
        long,
        value_name = "FILTER",
        env = "DOORWARD_LOG",
        default_value = "info"
    )]
    pub log_level: String,

    /// No effect since lines pass through a bounded queue. Accepted so that old command lines still start.
    #[arg(long, hide = true)]
    pub log_lines_per_minute: Option<u32>,

    /// OpenTelemetry collector for metrics and traces, by OTLP over gRPC without TLS: usually one on
    /// this machine, http://127.0.0.1:4317 [default: none].
    ///
    /// OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG choose traces.
    #[cfg(feature = "otel")]
    #[arg(long, hide_short_help = true, value_name = "http://HOST:PORT")]
    pub otlp: Option<tonic::transport::Endpoint>,
}
