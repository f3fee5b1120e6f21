greeting <- function() "from the other file: Größe 漢字"
