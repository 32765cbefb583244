//! Classes of characters by their names in Unicode: categories and scripts.
//!
//! The crate `regex` knows more (ages, properties, short names of scripts). An expression that uses
//! them would work here alone, so only what Go knows is taken.

use super::{Fault, class::EVERYTHING};

/// Reads `\pL`, `\p{Greek}`, `\P{^Greek}` at the beginning of a text: an item of a class.
pub(super) fn item(text: &str) -> Result<(String, &str), Fault> {
    let wrong = |part| Fault::new("invalid character class range", part);
    let is_upper = text.starts_with(r"\P");
    let after = &text[2..];
    let (name, rest) = match after.strip_prefix('{') {
        Some(inside) => inside.split_once('}').ok_or_else(|| wrong(text))?,
        None => after.split_at(after.chars().next().map_or(0, char::len_utf8)),
    };
    let (is_upper, name) = match name.strip_prefix('^') {
        Some(name) => (!is_upper, name),
        None => (is_upper, name),
    };
    let table = table(name).ok_or_else(|| wrong(&text[..text.len() - rest.len()]))?;
    let item = match (table, is_upper) {
        (Table::All, false) | (Table::Halves, true) => EVERYTHING.to_owned(),
        (Table::All, true) | (Table::Halves, false) => String::new(),
        (Table::Ascii, false) => r"\x{0}-\x{7F}".to_owned(),
        (Table::Ascii, true) => r"[^\x{0}-\x{7F}]".to_owned(),
        (Table::Assigned, false) => r"\P{gc=Cn}".to_owned(),
        (Table::Assigned, true) => r"\p{gc=Cn}".to_owned(),
        (Table::Category(name), false) => format!(r"\p{{gc={name}}}"),
        (Table::Category(name), true) => format!(r"\P{{gc={name}}}"),
        (Table::Script(name), false) => format!(r"\p{{sc={name}}}"),
        (Table::Script(name), true) => format!(r"\P{{sc={name}}}"),
    };
    Ok((item, rest))
}

#[derive(Clone, Copy)]
enum Table {
    All,
    Ascii,
    Assigned,
    /// Halves of surrogate pairs, which no text has.
    Halves,
    Category(&'static str),
    Script(&'static str),
}

/// Finds a name; case, underscores, hyphens and spaces do not matter.
fn table(name: &str) -> Option<Table> {
    let is_same = |known: &&str| plain(known).eq(plain(name));
    let special = [("Any", Table::All), ("Ascii", Table::Ascii), ("Assigned", Table::Assigned)];
    if let Some((_, table)) = special.into_iter().find(|(known, _)| is_same(known)) {
        return Some(table);
    }
    let category = CATEGORIES.iter().find(|names| names.split(' ').any(|known| is_same(&known)));
    if let Some(names) = category {
        let name = names.split(' ').next().unwrap_or_default();
        return Some(if name == "Cs" { Table::Halves } else { Table::Category(name) });
    }
    let mut scripts = SCRIPTS.iter().flat_map(|line| line.split(' '));
    scripts.find(is_same).map(Table::Script)
}

fn plain(name: &str) -> impl Iterator<Item = char> {
    let chars = name.chars().filter(|char| !matches!(char, '_' | '-' | ' '));
    chars.map(|char| char.to_ascii_lowercase())
}

/// Categories, each with its other names.
const CATEGORIES: [&str; 38] = [
    "C Other",
    "Cc Control cntrl",
    "Cf Format",
    "Cn Unassigned",
    "Co Private_Use",
    "Cs Surrogate",
    "L Letter",
    "LC Cased_Letter",
    "Ll Lowercase_Letter",
    "Lm Modifier_Letter",
    "Lo Other_Letter",
    "Lt Titlecase_Letter",
    "Lu Uppercase_Letter",
    "M Mark Combining_Mark",
    "Mc Spacing_Mark",
    "Me Enclosing_Mark",
    "Mn Nonspacing_Mark",
    "N Number",
    "Nd Decimal_Number digit",
    "Nl Letter_Number",
    "No Other_Number",
    "P Punctuation punct",
    "Pc Connector_Punctuation",
    "Pd Dash_Punctuation",
    "Pe Close_Punctuation",
    "Pf Final_Punctuation",
    "Pi Initial_Punctuation",
    "Po Other_Punctuation",
    "Ps Open_Punctuation",
    "S Symbol",
    "Sc Currency_Symbol",
    "Sk Modifier_Symbol",
    "Sm Math_Symbol",
    "So Other_Symbol",
    "Z Separator",
    "Zl Line_Separator",
    "Zp Paragraph_Separator",
    "Zs Space_Separator",
];

/// Scripts.
const SCRIPTS: [&str; 18] = [
    "Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak",
    "Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian",
    "Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot",
    "Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs",
    "Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi",
    "Gurmukhi Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic",
    "Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi",
    "Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha Limbu",
    "Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen",
    "Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs",
    "Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa",
    "Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian",
    "Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage",
    "Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic",
    "Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng",
    "Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil",
    "Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho",
    "Warang_Citi Yezidi Yi Zanabazar_Square",
];
