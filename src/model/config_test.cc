#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace deepinfer {
namespace {

using testing::HasSubstr;

std::string TextOf(const char* path) {
  const Result<std::string> json = ReadFile(Path(DEEPINFER_SOURCE_DIR) / path);
  EXPECT_TRUE(json.ok());
  return *json;
}

std::string Released() { return TextOf("tests/data/v41_config.json"); }

// The released text with one piece replaced.
std::string With(std::string_view from, std::string_view to) {
  std::string text = Released();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The message of the refusal; empty when the text is accepted.
std::string RefusalOf(const std::string& json) {
  const Result<ModelConfig> config = ModelConfig::Parse(json);
  return config.ok() ? "" : config.status().message();
}

TEST(ModelConfigTest, ReadsTheReleasedConfiguration) {
  const Result<ModelConfig> config = ModelConfig::Parse(Released());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->hidden_size, 5120);
  EXPECT_EQ(config->num_layers, 40);
  EXPECT_EQ(config->rms_norm_eps, 1e-20f);
  EXPECT_EQ(config->compress_ratios.size(), 43u);
  EXPECT_EQ(config->ngram_table_rows[1], 384016682);
  EXPECT_EQ(config->ngram_row_count(), 24);
  EXPECT_EQ(config->draft_target_layers, (std::vector<int>{37, 38, 39}));
  EXPECT_EQ(config->image_token, 129264);
  EXPECT_EQ(config->vision.max_wh_ratio, 0);
  EXPECT_EQ(config->first_decoder_layer(), 20);
}

TEST(ModelConfigTest, LayerMapIsThatOfTheSpecification) {
  const Result<ModelConfig> config = ModelConfig::Parse(Released());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->KindOf(1), LayerKind::kWindow);
  EXPECT_EQ(config->KindOf(2), LayerKind::kFull);
  EXPECT_EQ(config->KindOf(7), LayerKind::kReuse);
  EXPECT_EQ(config->KindOf(20), LayerKind::kFull);
  EXPECT_EQ(config->KindOf(24), LayerKind::kReindex);
  EXPECT_EQ(config->KindOf(39), LayerKind::kReuse);
  EXPECT_EQ(config->KvSourceOf(27), 20);
  EXPECT_EQ(config->IndexSourceOf(27), 24);
  EXPECT_EQ(config->IndexSourceOf(13), 8);
}

TEST(ModelConfigTest, EveryConfigurationInTheRepositoryIsAccepted) {
  for (const char* path : {"tests/golden/tiny/config.json", "tests/golden/wide/config.json",
                           "models/nano/config.json"}) {
    EXPECT_EQ(RefusalOf(TextOf(path)), "") << path;
  }
}

TEST(ModelConfigTest, DraftNgramMemoryAndVisionMayBeAbsent) {
  std::string text = With("\"vision_config\": {", "\"unused\": {");
  const auto replace = [&](std::string_view from, std::string_view to) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("\"num_nextn_predict_layers\": 3", "\"num_nextn_predict_layers\": 0");
  replace("\"engram_layer_ids\"", "\"unused_layer_ids\"");
  // The ratios of the three draft blocks go too.
  const size_t end = text.find(']', text.find("\"compress_ratios\""));
  const size_t last = text.rfind('1', end) + 1;
  text.erase(last, end - last);
  const Result<ModelConfig> config = ModelConfig::Parse(text);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_FALSE(config->has_vision);
  EXPECT_TRUE(config->ngram_layers.empty());
  EXPECT_EQ(config->num_draft_blocks, 0);
}

TEST(ModelConfigTest, AnotherModelIsNamedAsSuch) {
  EXPECT_THAT(
      RefusalOf(With("\"model_type\": \"deepseek_v41\"", "\"model_type\": \"llama\"")),
      testing::AllOf(HasSubstr("model_type"), HasSubstr("'llama'"), HasSubstr("'deepseek_v41'")));
  EXPECT_THAT(RefusalOf("{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 64}"),
              HasSubstr("model_type"));
  EXPECT_THAT(RefusalOf(With("DeepseekV41ForCausalLM", "DeepseekV4ForCausalLM")),
              HasSubstr("architectures"));
}

struct Refusal {
  const char* from;
  const char* to;
  std::vector<const char*> says;
};

TEST(ModelConfigTest, RefusalsNameTheKeyWhatWasFoundAndWhatWasExpected) {
  const Refusal refusals[] = {
      {"\"hidden_size\": 5120",
       "\"hidden_size\": \"5120\"",
       {"text_config.hidden_size", "a string", "an integer"}},
      {"\"hidden_size\": 5120", "\"hidden_size\": 5121", {"text_config.hidden_size", "5121", "32"}},
      {"\"hidden_size\": 5120", "\"hidden_size\": 5120.5", {"text_config.hidden_size", "integer"}},
      {"\"hidden_size\": 5120", "\"hidden_size\": 99999999999", {"text_config.hidden_size"}},
      {"\"hidden_size\": 5120", "\"hidden_size\": -32", {"text_config.hidden_size", "-32"}},
      {"\"hidden_size\": 5120,", "", {"text_config.hidden_size", "nothing"}},
      {"\"engram_vocab_size\": 16000000",
       "\"engram_vocab_size\": 9007199254740993",
       {"text_config.engram_vocab_size", "9007199254740993"}},
      {"\"engram_vocab_size\": 16000000",
       "\"engram_vocab_size\": 1.6e7",
       {"text_config.engram_vocab_size", "integer"}},
      {"\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"", {"hidden_act", "'gelu'", "'silu'"}},
      {"\"scoring_func\": \"sqrtsoftplus\"", "\"scoring_func\": \"sigmoid\"", {"scoring_func"}},
      {"\"topk_method\": \"noaux_tc\"", "\"topk_method\": \"greedy\"", {"topk_method"}},
      {"\"quant_method\": \"fp8\"",
       "\"quant_method\": \"awq\"",
       {"quantization_config.quant_method", "'awq'"}},
      {"\"scale_fmt\": \"ue8m0\"", "\"scale_fmt\": \"e4m3\"", {"scale_fmt"}},
      {"\"expert_dtype\": \"fp4\"", "\"expert_dtype\": \"fp8\"", {"expert_dtype"}},
      {"\"num_key_value_heads\": 1", "\"num_key_value_heads\": 8", {"num_key_value_heads", "8"}},
      {"\"n_shared_experts\": 1", "\"n_shared_experts\": 2", {"n_shared_experts", "2"}},
      {"\"norm_topk_prob\": true", "\"norm_topk_prob\": false", {"norm_topk_prob"}},
      {"\"attention_bias\": false", "\"attention_bias\": true", {"attention_bias"}},
      {"\"rope_type\": \"yarn\"",
       "\"rope_type\": \"linear\"",
       {"rope_scaling.rope_type", "linear"}},
      {"\"qk_rope_head_dim\": 64", "\"qk_rope_head_dim\": 63", {"qk_rope_head_dim", "63"}},
      {"\"qk_rope_head_dim\": 64", "\"qk_rope_head_dim\": 514", {"qk_rope_head_dim", "514"}},
      {"\"o_groups\": 8", "\"o_groups\": 7", {"o_groups", "7", "64"}},
      {"\"num_experts_per_tok\": 6",
       "\"num_experts_per_tok\": 385",
       {"num_experts_per_tok", "385"}},
      {"\"dspark_num_experts_per_tok\": 3",
       "\"dspark_num_experts_per_tok\": 129",
       {"dspark_num_experts_per_tok", "129"}},
      {"\"candidate_source_layer_id\": 20",
       "\"candidate_source_layer_id\": 14",
       {"candidate_source_layer_id", "14"}},
      {"\"num_hidden_layers\": 40", "\"num_hidden_layers\": 41", {"compress_ratios", "43", "44"}},
      {"\"hc_mult\": 4", "\"hc_mult\": 0", {"hc_mult", "0"}},
      {"\"index_topk\": 512", "\"index_topk\": 0", {"index_topk", "0"}},
      {"\"sliding_window\": 128", "\"sliding_window\": 0", {"sliding_window", "0"}},
      {"\"swiglu_limit\": 10.0", "\"swiglu_limit\": -1", {"swiglu_limit", "-1"}},
      {"\"dspark_noise_token_id\": 128799",
       "\"dspark_noise_token_id\": 129280",
       {"dspark_noise_token_id", "129280"}},
      {"\"image_token_id\": 129264", "\"image_token_id\": 129280", {"image_token_id", "129280"}},
      {"\"bos_token_id\": 0", "\"bos_token_id\": -1", {"bos_token_id", "-1"}},
  };
  for (const Refusal& refusal : refusals) {
    const std::string message = RefusalOf(With(refusal.from, refusal.to));
    EXPECT_NE(message, "") << refusal.to;
    for (const char* word : refusal.says) EXPECT_THAT(message, HasSubstr(word)) << refusal.to;
  }
}

TEST(ModelConfigTest, ListsMustFitTogether) {
  const auto list = [](const char* key, std::string_view values) {
    std::string text = Released();
    const size_t begin = text.find('[', text.find(std::string("\"") + key + "\""));
    return text.replace(begin, text.find(']', begin) - begin + 1, values);
  };
  const std::pair<const char*, const char*> refused[] = {
      {"kv_source_layer_ids", "[8, 2, 14, 20]"},
      {"kv_source_layer_ids", "[2, 8, 14, 40]"},
      {"kv_source_layer_ids", "[]"},
      {"kv_source_layer_ids", "[2, 2, 8, 14, 20]"},
      {"index_source_layer_ids", "[8, 14, 20, 24]"},
      {"index_source_layer_ids", "[0, 2, 8, 14, 20]"},
      {"engram_num_embeddings", "[384006168]"},
      {"engram_num_embeddings", "[0, 384016682]"},
      {"engram_layer_ids", "[1, 40]"},
      {"dspark_target_layer_ids", "[37, 38, 40]"},
      {"dspark_target_layer_ids", "[]"},
      {"weight_block_size", "[128, 128]"},
      {"weight_block_size", "[32]"},
      {"compress_ratios", "[0, 0]"},
      {"compress_ratios", "[true]"},
  };
  for (const auto& [key, values] : refused) {
    EXPECT_THAT(RefusalOf(list(key, values)), HasSubstr(key)) << values;
  }
  // These disagree with another list, which may be the one that the message names.
  for (const char* sources : {"[3, 8, 14, 20]", "[1, 2, 8, 14, 20]", "[2, 8, 14]"}) {
    EXPECT_NE(RefusalOf(list("kv_source_layer_ids", sources)), "") << sources;
  }
}

TEST(ModelConfigTest, RatiosMustDivideABlockAndAgreeWithTheirSource) {
  const auto ratios = [](int at, int ratio) {
    std::string values = "[";
    for (int layer = 0; layer < 43; ++layer) {
      const int released = layer < 2 || layer >= 40 ? 0 : layer < 20 ? 2 : 1;
      values += std::to_string(layer == at ? ratio : released) + (layer == 42 ? "]" : ",");
    }
    std::string text = Released();
    const size_t begin = text.find('[', text.find("\"compress_ratios\""));
    return text.replace(begin, text.find(']', begin) - begin + 1, values);
  };
  EXPECT_EQ(RefusalOf(ratios(0, 0)), "");
  EXPECT_THAT(RefusalOf(ratios(3, 3)), HasSubstr("compress_ratios"));
  EXPECT_THAT(RefusalOf(ratios(3, -1)), HasSubstr("compress_ratios"));
  EXPECT_THAT(RefusalOf(ratios(3, 1)), HasSubstr("compress_ratios"));
  EXPECT_THAT(RefusalOf(ratios(0, 2)), HasSubstr("source"));
  EXPECT_THAT(RefusalOf(ratios(41, 1)), HasSubstr("draft"));
  EXPECT_THAT(RefusalOf(ratios(20, 0)), HasSubstr("window"));
}

TEST(ModelConfigTest, TextThatIsNoConfigurationIsRefused) {
  for (const char* text : {"", "{", "[]", "null", "7", "{}", "\"x\"", "{\"a\": 1}{"}) {
    EXPECT_NE(RefusalOf(text), "") << text;
  }
  EXPECT_NE(RefusalOf("{\"model_type\": \"\xff\"}"), "");
  EXPECT_NE(RefusalOf(std::string(100000, '[')), "");
}

TEST(ModelConfigTest, AKeyThatStandsTwiceIsRefused) {
  EXPECT_THAT(RefusalOf(With("\"head_dim\": 512", "\"head_dim\": 512, \"head_dim\": 256")),
              HasSubstr("text_config.head_dim"));
}

TEST(ModelConfigTest, ADirectoryAndTheFileItselfGiveTheSame) {
  const Path dir = Path(DEEPINFER_SOURCE_DIR) / "tests/golden/wide";
  const Result<ModelConfig> config = ModelConfig::Load(dir / "config.json");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->canonical_text, ModelConfig::Load(dir)->canonical_text);
}

TEST(ModelConfigTest, MissingDirectoryAndFileAreNamed) {
  EXPECT_EQ(ModelConfig::Load("/no/such/dir").status().code(), ErrorCode::kNotFound);
  const ScratchDir empty;
  EXPECT_THAT(ModelConfig::Load(empty.path()).status().message(), HasSubstr("config.json"));
  EXPECT_FALSE(ModelConfig::Load(Path(std::string(5000, 'a'))).ok());
}

}  // namespace
}  // namespace deepinfer
