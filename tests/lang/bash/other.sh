greeting() { echo "from the other file: Größe 漢字"; }
