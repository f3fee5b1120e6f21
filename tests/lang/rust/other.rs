pub fn greeting() -> String {
    "from the other file: Größe 漢字".to_string()
}
