//! Base64 (RFC 4648), bit by bit: no white space, no stray bits, padding exactly as the alphabet wants it.

/// The bytes of a text in the standard alphabet, padded.
pub(crate) fn standard(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let plain = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    // Without padding the groups must be whole; with it, exactly the missing characters are padded.
    let padding = text.len() - plain.len();
    if plain.len() % 4 != (4 - padding) % 4 {
        return None;
    }
    bits(plain, '+', '/')
}

/// The bytes of a text in the alphabet for URLs, not padded.
pub(crate) fn url(text: &str) -> Option<Vec<u8>> {
    bits(text, '-', '_')
}

fn bits(text: &str, sixty_second: char, sixty_third: char) -> Option<Vec<u8>> {
    let mut bits = Vec::new();
    for character in text.chars() {
        let value = match character {
            'A'..='Z' => character as u32 - 'A' as u32,
            'a'..='z' => character as u32 - 'a' as u32 + 26,
            '0'..='9' => character as u32 - '0' as u32 + 52,
            _ if character == sixty_second => 62,
            _ if character == sixty_third => 63,
            _ => return None,
        };
        bits.extend((0..6).rev().map(|place| value >> place & 1));
    }
    let left = bits.len() % 8;
    // A single character makes no byte, and the bits that are left over are zero.
    if left >= 6 || bits[bits.len() - left..].contains(&1) {
        return None;
    }
    let byte = |bits: &[u32]| bits.iter().fold(0, |byte, bit| byte << 1 | bit) as u8;
    Some(bits.chunks_exact(8).map(byte).collect())
}
