//! Reports of Envoy's quota service, which no small message unfolds into much memory. A report of two bytes takes a
//! hundred once it is decoded, so reports beyond a number are skipped before that, and so are very long ones.

use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, decode_varint, message, skip_field, string};
use prost::{DecodeError, Message};

/// Largest number of reports of a message that are read.
pub const USAGES_MAX: usize = 20_000;

/// Largest report that is read, in bytes.
const USAGE_BYTES_MAX: u64 = 4_096;

/// Reports of the buckets of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateLimitQuotaUsageReports {
    /// In the first message only.
    pub domain: String,
    /// At most [`USAGES_MAX`] of them.
    pub bucket_quota_usages: Vec<rate_limit_quota_usage_reports::BucketQuotaUsage>,
}

/// Parts of the message.
pub mod rate_limit_quota_usage_reports {
    use crate::envoy::rate_limit_quota::BucketId;

    /// Use of one bucket since its last report.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct BucketQuotaUsage {
        /// Its keys and values.
        #[prost(message, optional, tag = "1")]
        pub bucket_id: Option<BucketId>,
        /// Whole seconds, 0 in the first report.
        #[prost(message, optional, tag = "2")]
        pub time_elapsed: Option<prost_types::Duration>,
        /// Requests that passed.
        #[prost(uint64, tag = "3")]
        pub num_requests_allowed: u64,
        /// Requests that were refused.
        #[prost(uint64, tag = "4")]
        pub num_requests_denied: u64,
    }
}

impl Message for RateLimitQuotaUsageReports {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        if !self.domain.is_empty() {
            string::encode(1, &self.domain, buf);
        }
        message::encode_repeated(2, &self.bucket_quota_usages, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => string::merge(wire_type, &mut self.domain, buf, ctx),
            2 if self.bucket_quota_usages.len() < USAGES_MAX
                && decode_varint(&mut buf.chunk())? <= USAGE_BYTES_MAX =>
            {
                message::merge_repeated(wire_type, &mut self.bucket_quota_usages, buf, ctx)
            }
            _ => skip_field(wire_type, tag, buf, ctx),
        }
    }

    fn encoded_len(&self) -> usize {
        let domain = match self.domain.is_empty() {
            true => 0,
            false => string::encoded_len(1, &self.domain),
        };
        domain + message::encoded_len_repeated(2, &self.bucket_quota_usages)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::rate_limit_quota_usage_reports::BucketQuotaUsage;
    use super::*;
    use crate::envoy::rate_limit_quota::BucketId;

    fn usage(bytes: usize) -> BucketQuotaUsage {
        BucketQuotaUsage {
            bucket_id: Some(BucketId {
                bucket: [("user".to_owned(), "a".repeat(bytes))].into(),
            }),
            num_requests_denied: 7,
            ..BucketQuotaUsage::default()
        }
    }

    #[test]
    fn many_reports_and_very_long_ones_are_not_read() {
        for (usages, read) in [
            (vec![usage(3)], 1),
            (vec![usage(3), usage(5_000), usage(4)], 2),
            (vec![BucketQuotaUsage::default(); 50_000], USAGES_MAX),
        ] {
            let sent = RateLimitQuotaUsageReports {
                domain: "api".to_owned(),
                bucket_quota_usages: usages,
            };
            let got = RateLimitQuotaUsageReports::decode(&*sent.encode_to_vec()).unwrap();
            assert_eq!(got.domain, "api");
            assert_eq!(got.bucket_quota_usages.len(), read);
            assert_eq!(
                got.bucket_quota_usages.first(),
                sent.bucket_quota_usages.first()
            );
        }
    }
}
