//! Encodes protocol buffers, as far as a trace needs them: fields are varints, fixed 64-bit words,
//! texts and messages.

/// A protocol-buffer message that is being built.
#[derive(Clone, Debug, Default)]
pub struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    /// Returns the encoded bytes of the protocol-buffer message.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire: u64) {
        self.raw(u64::from(field) << 3 | wire);
    }

    /// Appends an integer field with the number `field` to the message.
    #[must_use]
    pub fn number(mut self, field: u32, value: u64) -> Self {
        self.tag(field, 0);
        self.raw(value);
        self
    }

    /// Appends a fixed 64-bit field with the number `field` to the message.
    #[must_use]
    pub fn fixed(mut self, field: u32, value: u64) -> Self {
        self.tag(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends a text field with the number `field` to the message.
    #[must_use]
    pub fn text(self, field: u32, value: &str) -> Self {
        self.run(field, value.as_bytes())
    }

    /// Appends a field with the number `field` that has another message as its value.
    #[must_use]
    pub fn message(self, field: u32, value: &ProtoMessage) -> Self {
        self.run(field, &value.0)
    }

    fn run(mut self, field: u32, bytes: &[u8]) -> Self {
        self.tag(field, 2);
        self.raw(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples from the format's documentation.
    #[test]
    fn encoding_matches_the_protobuf_documentation() {
        assert_eq!(ProtoMessage::default().number(1, 150).bytes(), [0x08, 0x96, 0x01]);
        let testing = [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67];
        assert_eq!(ProtoMessage::default().text(2, "testing").bytes(), testing);
        let within = ProtoMessage::default().message(3, &ProtoMessage::default().number(1, 150));
        assert_eq!(within.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(ProtoMessage::default().fixed(1, 1).bytes(), [0x09, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ProtoMessage::default().number(1, u64::MAX).bytes().len(), 11);
    }
}
